"""The console in real Chromium, in front of real services and a real server."""

"""The faults, a module each: `async def run(rig, seed, scale) -> Findings`."""

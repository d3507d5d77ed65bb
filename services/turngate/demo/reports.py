"""The reports that the demo's agents write: one of each kind, worded for what a session works on."""

from typing import Any, Final, NamedTuple

Report = dict[str, Any]


class Topic(NamedTuple):
    """What a session works on: its id, the thing it changes, the file, and how it is checked."""

    session: str
    thing: str
    file: str
    check: str


TOPICS: Final = (
    Topic("checkout-rounding", "rounding of totals in the checkout", "src/checkout/totals.py", "61 unit tests pass"),
    Topic("login-lockout", "lock-out after failed log-ins", "src/auth/lockout.py", "the auth suite passes"),
    Topic("search-ranking", "ranking of search results", "src/search/rank.py", "the golden queries rank as before"),
    Topic("invoice-export", "export of invoices", "src/billing/export.py", "10,000 invoices compare equal"),
    Topic("image-cache", "cache of thumbnails", "src/media/cache.py", "the cache survives a restart in the soak test"),
    Topic("mail-retry", "retry of bounced mail", "src/mail/retry.py", "the retry table is covered by 14 cases"),
    Topic("rate-limits", "rate limits of the public API", "src/api/limits.py", "a load run stays below the limit"),
    Topic("feature-flags", "evaluation of feature flags", "src/flags/eval.py", "property tests pass"),
    Topic("audit-log", "audit log of administrators", "src/audit/log.py", "every admin route writes one line"),
    Topic("webhooks", "signatures of webhooks", "src/hooks/sign.py", "the vectors of the documentation pass"),
    Topic("csv-import", "import of CSV files", "src/import/csv.py", "200 broken files are refused with a reason"),
    Topic("time-zones", "time zones in reminders", "src/remind/zones.py", "both clock changes of a year are covered"),
    Topic("pdf-fonts", "fonts in generated PDFs", "src/pdf/fonts.py", "three documents render as before"),
    Topic("db-pool", "pool of database connections", "src/db/pool.py", "no connection leaks in an hour of load"),
    Topic("session-expiry", "expiry of sessions", "src/auth/expiry.py", "the clock is moved in 9 tests"),
    Topic("price-history", "history of prices", "src/prices/history.py", "the migration was run on a copy"),
    Topic("geo-lookup", "lookup of places", "src/geo/lookup.py", "500 addresses resolve as before"),
    Topic("upload-limits", "limits of uploads", "src/upload/limits.py", "an upload one byte over is refused"),
    Topic("dark-mode", "dark mode of the settings page", "web/settings.css", "contrast is checked on every page"),
    Topic("job-queue", "priorities in the job queue", "src/jobs/queue.py", "no starvation in the simulation"),
    Topic("backup-check", "verification of backups", "ops/backup.py", "last night's backup restores"),
    Topic("password-rules", "rules for passwords", "src/auth/rules.py", "the rule table has a test per row"),
    Topic("event-schema", "schema of analytics events", "src/events/schema.py", "old events still decode"),
    Topic("graph-layout", "layout of dependency graphs", "web/graph.ts", "snapshots of 12 graphs agree"),
    Topic("tax-rules", "tax rules for 2027", "src/tax/rules.py", "the published examples come out to the cent"),
    Topic("cli-help", "help texts of the command line", "src/cli/help.py", "every command has an example that runs"),
    Topic("memory-leak", "memory of the import worker", "src/import/worker.py", "memory is flat over 5,000 files"),
    Topic("cert-renewal", "renewal of certificates", "ops/certs.py", "a renewal was rehearsed on staging"),
)


def done(topic: Topic) -> Report:
    """A finished turn that says how it was checked."""
    return {
        "task_status": "completed",
        "headline": f"The {topic.thing} is corrected and covered by tests",
        "blocks": [
            _change(topic),
            {
                "type": "verification",
                "id": "checked",
                "summary": f"Checked: {topic.check}",
                "status": "passed",
                "evidence": topic.check,
            },
        ],
    }


def with_notes(topic: Topic) -> Report:
    """A finished turn with findings, a warning, partial checks and something that fits nowhere."""
    return {
        "task_status": "completed_with_notes",
        "headline": f"The {topic.thing} works; two things around it deserve a look",
        "blocks": [
            _change(topic),
            {
                "type": "finding",
                "id": "old-callers",
                "summary": f"Two callers still rely on the old {topic.thing}",
                "impact": "They keep working, but log a deprecation at each call",
                "importance": "medium",
                "blocks_current_task": False,
                "related_files": [topic.file],
            },
            {
                "type": "warning",
                "id": "no-staging",
                "summary": "Staging was down, so nothing was tried there",
                "severity": "high",
                "impact": "A difference between staging and tests would show only after the release",
            },
            {"type": "verification", "id": "unit", "summary": f"Unit tests: {topic.check}", "status": "passed"},
            {
                "type": "verification",
                "id": "staging",
                "summary": "A run on staging",
                "status": "not_run",
                "limitation": "Staging did not answer",
                "required_to_verify": "Run the smoke tests once staging is back",
            },
            {
                "type": "verification",
                "id": "load",
                "summary": "Behaviour under load was looked at for a minute only",
                "status": "partial",
                "limitation": "The load generator has a time limit",
            },
            {
                "type": "unclassified",
                "id": "naming",
                "summary": "The module's name no longer says what it does",
                "reason_unclassified": "An observation, neither a finding nor a proposal",
                "suggested_type": "finding",
            },
        ],
    }


def explained() -> Report:
    """A turn that only read and explains."""
    return {
        "task_status": "completed",
        "headline": "Why the nightly job was late: it waited for a lock that the backup holds",
        "blocks": [
            {
                "type": "finding",
                "id": "lock",
                "summary": "The backup holds the table lock from 02:00 to 02:40",
                "impact": "Everything that starts in that time waits",
                "importance": "high",
                "blocks_current_task": False,
                "details": "## What happens\n\n1. The backup takes the lock.\n2. The job waits.\n3. The job is late.",
            }
        ],
    }


def decision(topic: Topic) -> Report:
    """A turn that stopped where a person must choose between ways."""
    return _asks(
        topic,
        f"The {topic.thing} can be released in two ways; both are ready",
        {
            "type": "decision",
            "id": "release",
            "summary": "How to release it",
            "options": [
                {
                    "id": "at-once",
                    "label": "Release to everybody",
                    "effect": "dispatch",
                    "instruction": f"Release the {topic.thing} to everybody and watch the error rate for ten minutes.",
                    "consequence": "A mistake reaches every customer",
                },
                {
                    "id": "gradually",
                    "label": "Release to one in ten first",
                    "effect": "dispatch",
                    "instruction": f"Release the {topic.thing} to 10 % and report the error rate tomorrow.",
                    "description": "Takes a day longer",
                },
                {"id": "not-yet", "label": "Leave it for now", "effect": "resolve"},
            ],
            "recommendation": "gradually",
            "recommendation_reason": "The error budget of this month is nearly used up",
            "response_type": "single",
        },
    )


def question(topic: Topic) -> Report:
    """A turn that needs to know something."""
    return _asks(
        topic,
        f"One fact about the {topic.thing} is missing",
        {
            "type": "question",
            "id": "which-limit",
            "summary": "The documentation and the code disagree",
            "question": "Which of the two limits is right?",
            "options": [
                {
                    "id": "docs",
                    "label": "The documented one",
                    "effect": "dispatch",
                    "instruction": "Change the code to the documented limit.",
                },
                {"id": "own", "label": "Neither, I will say", "effect": "collect"},
            ],
            "recommendation_reason": "Customers have read the documentation",
            "response_type": "single",
        },
    )


def blocked(topic: Topic) -> Report:
    """A turn that can't go on."""
    return {
        "task_status": "blocked",
        "headline": f"The {topic.thing} can't be finished without access to production",
        "blocks": [
            {
                "type": "blocked",
                "id": "access",
                "summary": "The last step reads production data",
                "blocker": "The deploy role may not read the table",
                "required_action": "Grant read access for an hour",
                "options": [
                    {
                        "id": "granted",
                        "label": "Access is granted",
                        "effect": "dispatch",
                        "instruction": "Access is granted for an hour: finish the last step now.",
                    },
                    {"id": "stop", "label": "Stop here", "effect": "resolve"},
                ],
                "recommendation": "granted",
                "recommendation_reason": "Everything else is done",
                "response_type": "single",
            }
        ],
    }


def next_step(topic: Topic) -> Report:
    """A finished turn that proposes how to go on."""
    return _asks(
        topic,
        f"The {topic.thing} is done; one clean-up would pay off",
        {
            "type": "next_step",
            "id": "clean-up",
            "summary": f"Remove the old code beside {topic.file}",
            "options": [
                {
                    "id": "do-it",
                    "label": "Clean it up",
                    "effect": "dispatch",
                    "instruction": f"Remove the old code beside {topic.file} and run all tests.",
                    "preview": f"- {topic.file.rsplit('/', 1)[-1]}.old\n- 214 lines",
                },
                {"id": "leave", "label": "Leave it", "effect": "resolve"},
            ],
            "recommendation": "do-it",
            "recommendation_reason": "Nothing calls it any more",
            "response_type": "single",
        },
    )


def failed() -> Report:
    """A turn that did not succeed and says why."""
    return {
        "task_status": "failed",
        "headline": "The upgrade of the parser was rolled back",
        "blocks": [
            {
                "type": "finding",
                "id": "grammar",
                "summary": "The new parser refuses 3 % of the stored documents",
                "impact": "They could not be opened any more",
                "importance": "critical",
                "blocks_current_task": True,
            }
        ],
    }


def unchecked(topic: Topic) -> Report:
    """Claims to be completed and does not say how that was checked."""
    return {**done(topic), "blocks": [_change(topic)]}


def buried(topic: Topic) -> Report:
    """Proposes a follow-up in prose, where nobody can pick it, and misses its verification."""
    report = unchecked(topic)
    report["blocks"][0]["details"] = "The old code is still there. Want me to remove it as well? Just say the word."
    return report


def sloppy(topic: Topic) -> Report:
    """Breaks several rules at once."""
    return {
        "task_status": "done",
        "headline": f"{topic.thing}\nfixed " + "and polished " * 16,
        "blocks": [
            {"type": "change", "id": "Not An Id", "summary": ""},
            {"type": "decision", "id": "d", "summary": "Pick", "options": [{"id": "a", "label": "A", "effect": "run"}]},
        ],
    }


NOT_A_REPORT: Final = "All done! Everything works now, I promise. Let me know if you need anything else."
"""What an agent writes that was never told of reports."""


def _change(topic: Topic) -> Report:
    return {
        "type": "change",
        "id": "change",
        "summary": f"The {topic.thing} now follows the specification",
        "related_files": [topic.file, topic.file.replace("src/", "tests/test_")],
    }


def _asks(topic: Topic, headline: str, block: Report) -> Report:
    checked = {"type": "verification", "id": "checked", "summary": f"Checked: {topic.check}", "status": "passed"}
    return {"task_status": "needs_action", "headline": headline, "blocks": [_change(topic), checked, block]}

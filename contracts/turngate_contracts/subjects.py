"""Every subject, stream, bucket and durable consumer by name, under one namespace.

A subject is built from checked ids and taken apart again here and nowhere else. `{runner}` and `{caller}` are the
sender's own identity, and `{pool}` before them is one of its pools: permissions pin them, so who did something, and for
which pool, is known and not claimed.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.ids import check_id, check_namespace

DEFAULT_NAMESPACE: Final = "tg"
API: Final = "$JS.API"
"""What the subjects of JetStream's own requests begin with."""
CORE_API: Final = "$JS.CORE.API"
"""The same for people's clients, whose account has requests of its own that lead to no stream."""
SPLIT: Final = frozenset({"turns"})
"""The buckets whose reconciler is given only what wants something, because most revisions want nothing: a consumer
filters by subject, so a key's revisions stand on two. The other buckets have one subject a key."""
STANDINGS: Final = ("rest", "wants")
"""What tells the two apart: whether the state wants nothing, or something."""


class Subjects(Struct, frozen=True):
    """The names of one namespace; two namespaces share a server without meeting."""

    namespace: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        check_namespace(self.namespace)

    # Streams and buckets

    def stream(self, name: str) -> str:
        """Return a stream's name, such as TG_TURNS for `turns`."""
        return f"{self.namespace}_{name}".upper()

    def bucket(self, name: str) -> str:
        """Return a bucket's name, such as tg_turns for `turns`."""
        return f"{self.namespace}_{name}"

    def bucket_stream(self, name: str) -> str:
        """Return the name of the stream that holds a bucket."""
        return f"KV_{self.bucket(name)}"

    def key(self, bucket: str, key: str) -> str:
        """Return the filter of a key's revisions, whatever they want; the parts of the key are ids joined by dots.

        It is the one subject of the key where the bucket is not split.
        """
        return f"{self._bucket_prefix(bucket)}{'*.' if bucket in SPLIT else ''}{key}"

    def revision(self, bucket: str, key: str, *, wants: bool) -> str:
        """Return the subject on which a revision of a key is saved, by whether its state wants something."""
        if bucket not in SPLIT:
            return self.key(bucket, key)
        return f"{self._bucket_prefix(bucket)}{STANDINGS[wants]}.{key}"

    def unsplit(self, bucket: str, key: str) -> str:
        """Return the one subject that a key of a split bucket had in topology version 2."""
        return f"{self._bucket_prefix(bucket)}{key}"

    def key_of(self, bucket: str, subject: str) -> str:
        """Return the key whose revision stands on a subject of a bucket, also on the one that version 2 gave it."""
        rest = subject[len(self._bucket_prefix(bucket)) :]
        return rest.partition(".")[2] or rest if bucket in SPLIT else rest

    def key_like(self, bucket: str, subject: str) -> str:
        """Return the filter of all revisions of the key that a subject of a bucket belongs to."""
        return self.key(bucket, self.key_of(bucket, subject))

    def bucket_of(self, stream: str) -> str:
        """Return the bucket that a stream holds; empty for a stream that holds none."""
        prefix = self.bucket_stream("")
        return stream.removeprefix(prefix) if stream.startswith(prefix) else ""

    def _bucket_prefix(self, bucket: str) -> str:
        return f"$KV.{self.namespace}_{bucket}."

    # Intake

    def turn_report(self, pool: str, runner: str, session: str) -> str:
        """Return where a runner of the session's pool publishes a ReportSubmitted."""
        return f"{self.namespace}.turn.report.{_sender(pool, runner, session)}"

    def turn_ended(self, pool: str, runner: str, session: str) -> str:
        """Return where a runner of the session's pool publishes a TurnEnded."""
        return f"{self.namespace}.turn.ended.{_sender(pool, runner, session)}"

    def task_finished(self, pool: str, runner: str, session: str) -> str:
        """Return where a TaskFinished is published by a runner of the pool of the session that delegated the task."""
        return f"{self.namespace}.task.finished.{_sender(pool, runner, session)}"

    def esm_result(self, runner: str, session: str) -> str:
        """Return where a runner publishes a RoleEnded; its claim, which names the pool, is what it is believed by."""
        return f"{self.namespace}.esm.result.{check_id('runner', runner)}.{check_id('session', session)}"

    def esm_start(self, session: str) -> str:
        """Return where a service publishes a StartObjective."""
        return f"{self.namespace}.esm.start.{check_id('session', session)}"

    # Mailboxes, work and events

    def mailbox(self, runner: str, kind: str) -> str:
        """Return the subject of one kind of nudge to a runner: verdict, ending, answered or refused."""
        return f"{self.namespace}.to.{check_id('runner', runner)}.{kind}"

    def mailbox_all(self, runner: str) -> str:
        """Return what a runner subscribes to."""
        return f"{self.namespace}.to.{check_id('runner', runner)}.>"

    def runner_stat(self, runner: str) -> str:
        """Return where a runner is asked about files on its host."""
        return f"{self.namespace}.runner.{check_id('runner', runner)}.stat"

    def memory_check(self) -> str:
        """Return where whoever keeps memories may listen, to be asked which of them exist."""
        return f"{self.namespace}.memory.check"

    def prompt(self, pool: str, prompt: str) -> str:
        """Return where a prompt for a pool is put; one message a subject, so a second is refused."""
        return f"{self.namespace}.work.{check_id('pool', pool)}.prompt.{check_id('prompt', prompt)}"

    def prompts(self, pool: str) -> str:
        """Return the filter of a pool's prompts."""
        return f"{self.namespace}.work.{check_id('pool', pool)}.prompt.*"

    def prompt_consumer(self, pool: str) -> str:
        """Return the durable consumer that a pool's runners share for prompts."""
        return f"prompts-{check_id('pool', pool)}"

    def role_offer(self, pool: str, role: str, role_run: str) -> str:
        """Return where a role run is offered to a pool; one message a subject, so a second is refused."""
        return f"{self._roles(pool, role)}.{check_id('role_run', role_run)}"

    def role_offers(self, pool: str, role: str) -> str:
        """Return the filter of a pool's offers of one role."""
        return f"{self._roles(pool, role)}.*"

    def all_role_offers(self) -> str:
        """Return the filter of the offers of every pool."""
        return f"{self.namespace}.work.*.role.*.*"

    def role_consumer(self, pool: str, role: str) -> str:
        """Return the durable consumer that a pool's runners share for one role."""
        return f"roles-{check_id('role', role)}-{check_id('pool', pool)}"

    def _roles(self, pool: str, role: str) -> str:
        return f"{self.namespace}.work.{check_id('pool', pool)}.role.{check_id('role', role)}"

    def presence(self, runner: str) -> str:
        """Return where it is kept for a short time that a runner is alive."""
        return f"{self.namespace}.presence.{check_id('runner', runner)}"

    def presences(self) -> str:
        """Return the filter of all runners that are alive."""
        return f"{self.namespace}.presence.*"

    def event(self, kind: str, key: str) -> str:
        """Return the subject of the events of a bucket's key."""
        return f"{self.namespace}.event.{kind}.{key}"

    def progress(self, session: str) -> str:
        """Return the subject of what a session's running agent says."""
        return self.event("progress", check_id("session", session))

    def events(self) -> str:
        """Return the filter of all events."""
        return f"{self.namespace}.event.>"

    def live(self) -> str:
        """Return the filter of the republished events, which any number of readers may subscribe to."""
        return f"{self.namespace}.live.>"

    def timer_at(self, kind: str, timer: str) -> str:
        """Return where a timer is scheduled."""
        return f"{self.namespace}.timer.at.{check_id('kind', kind)}.{check_id('timer', timer)}"

    def timer_due(self, kind: str, timer: str) -> str:
        """Return where a timer arrives when it is due."""
        return f"{self.namespace}.timer.due.{check_id('kind', kind)}.{check_id('timer', timer)}"

    def timer_consumer(self, kind: str) -> str:
        """Return the durable consumer of one kind of timers."""
        return f"timers-{check_id('kind', kind)}"

    def dead(self, stream: str) -> str:
        """Return what the subjects of a stream's dead letters begin with."""
        return f"{self.namespace}.dead.{stream}"

    def dead_letter(self, stream: str, letter: str) -> str:
        """Return where a dead letter and the decisions about it are kept."""
        return f"{self.dead(check_id('stream', stream))}.{check_id('letter', letter)}"

    def dead_letters(self, stream: str = "") -> str:
        """Return the filter of all dead letters, or of one stream's."""
        return f"{self.dead(check_id('stream', stream) if stream else '*')}.*"

    def advisories(self, kind: str, stream: str) -> str:
        """Return where the server tells of a stream's messages that it does not deliver any more."""
        return f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{stream}.*"

    def suspect(self, digest: str) -> str:
        """Return where it is noted that a message is being handled which may have killed its process."""
        return f"{self.namespace}.suspect.{check_id('digest', digest)}"

    def suspects(self) -> str:
        """Return the filter of all such notes."""
        return f"{self.namespace}.suspect.*"

    def mark(self, stream: str) -> str:
        """Return where the highest sequence is noted that was ever seen in a stream."""
        return f"{self.namespace}.mark.{check_id('stream', stream)}"

    def marks(self) -> str:
        """Return the filter of all such notes."""
        return f"{self.namespace}.mark.*"

    # Requests

    def api(self, name: str, caller: str, pool: str = "") -> str:
        """Return where `caller` sends a request, such as `turn.answer`; `pool` where the request is bound to one."""
        whole = f"{name}.{check_id('pool', pool)}" if pool else name
        return f"{self.namespace}.api.{whole}.{check_id('caller', caller)}"

    def api_endpoint(self, name: str, *, by_pool: bool = False) -> str:
        """Return what a service listens on for a request."""
        return f"{self.namespace}.api.{name}.{'*.*' if by_pool else '*'}"


def inbox_prefix(identity: str) -> str:
    """Return what an identity's reply subjects begin with: permissions let nobody else subscribe below it."""
    return f"_INBOX.{check_id('identity', identity)}"


def last_token(subject: str) -> str:
    """Return the last part of a subject: a session, a timer's id or the caller of a request."""
    return subject[subject.rindex(".") + 1 :]


def sender_and_session(subject: str) -> tuple[str, str]:
    """Return the runner and the session that an intake subject names."""
    _, runner, session = subject.rsplit(".", 2)
    return runner, session


def pool_sender_session(subject: str) -> tuple[str, str, str]:
    """Return the pool, the runner and the session that an intake subject of turns or tasks names."""
    _, pool, runner, session = subject.rsplit(".", 3)
    return pool, runner, session


def _sender(pool: str, runner: str, session: str) -> str:
    return f"{check_id('pool', pool)}.{check_id('runner', runner)}.{check_id('session', session)}"

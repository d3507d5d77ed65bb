"""Provisioning where the server can't make a stream's folder: for a moment, and for good."""

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting
from turngate.jetstream import provision as provision_module
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import Provisioned, TopologyStuck, provision
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology


@pytest.fixture
def no_folder(own_server: EmbeddedServer, subjects: Subjects) -> None:
    """Put a file where the server wants a stream's folder; it refuses the stream for that, and takes the file away."""
    path = own_server.state_dir / "jetstream" / "$G" / "streams" / subjects.stream("turns")
    path.parent.mkdir(parents=True)
    path.touch()


@pytest.mark.usefixtures("no_folder")
async def test_a_folder_that_can_not_be_made_for_a_moment_hinders_nothing(
    own_server: EmbeddedServer, connecting: Connecting, requesting: Requesting, subjects: Subjects
) -> None:
    requester = await requesting(await connecting(own_server.url))

    await provision(requester, Topology(subjects))

    assert "Stream create failed" in own_server.log_file.read_text()
    assert await provision(requester, Topology(subjects)) == Provisioned()


@pytest.mark.usefixtures("no_folder")
async def test_a_folder_that_can_not_be_made_at_all_is_explained(
    own_server: EmbeddedServer,
    connecting: Connecting,
    requesting: Requesting,
    subjects: Subjects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provision_module, "STORE_PATIENCE_S", 0.0)
    requester = await requesting(await connecting(own_server.url))

    with pytest.raises(TopologyStuck, match="the server's log says why"):
        await provision(requester, Topology(subjects))

# SPDX-License-Identifier: Apache-2.0
"""Ray's job interface with address and token filled in, and the jobs that outlive their validator."""
import json
import os
import secrets
import shlex
import time

from . import directory
from .errors import PeersError
from .said import last_line
from .seats import check_ray, environment

EVERY = 5  # seconds between two looks of the validator at its jobs


def _client(network, dashboard):
    os.environ.update(environment(network))
    from ray.job_submission import JobSubmissionClient
    try:
        return JobSubmissionClient("http://" + dashboard)
    except (ConnectionError, RuntimeError) as error:
        raise PeersError(f"Ray's dashboard http://{dashboard} does not serve: {str(error).splitlines()[0]}"
                         ) from None


def _submit(client, name, said):
    runtime = {"working_dir": said["folder"]} if said["folder"] else {}
    return client.submit_job(entrypoint=said["entrypoint"], submission_id=name, runtime_env=runtime)


class Desk:
    """The validator's: what was submitted and has not ended when one dies is submitted again by the next."""

    def __init__(self, network, dashboard):
        self.network, self.dashboard, self.client, self.due = network, dashboard, None, 0

    def carry(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + EVERY
        open_jobs = directory.jobs(self.network)
        if not open_jobs:
            return
        self.client = self.client or _client(self.network, self.dashboard)
        try:
            known = {one.submission_id: one for one in self.client.list_jobs()}
            for name, text in open_jobs.items():
                if name not in known:
                    _submit(self.client, name, json.loads(text))
                elif known[name].status.is_terminal():
                    directory.jobs(self.network, ended=name)
        except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
            raise PeersError(f"jobs: {str(error).splitlines()[0]}") from None


class Jobs:
    """The user's."""

    def __init__(self, network):
        said, _ = directory.validator(network)
        check_ray(said["ray"])
        self.network, self.client = network, _client(network, said["dashboard"])

    def submit(self, program, folder):
        if not program:
            raise PeersError("submit wants a program: vcuda-peers submit NETWORK.yaml -- PROGRAM ...")
        said = {"entrypoint": shlex.join(program), "folder": os.path.abspath(folder) if folder else ""}
        name = self._of(_submit, self.client, "job-" + secrets.token_hex(6), said)
        directory.jobs(self.network, **{name: json.dumps(said)})
        return name

    def jobs(self):
        return [{"job": one.submission_id, "status": str(one.status.value), "entrypoint": one.entrypoint}
                for one in self._of(self.client.list_jobs) if one.submission_id]

    def logs(self, name):
        return self._of(self.client.get_job_logs, name)

    def stop(self, name):
        self._of(self.client.stop_job, name)
        directory.jobs(self.network, ended=name)

    def _of(self, call, *arguments):
        try:
            return call(*arguments)
        except (RuntimeError, ValueError, OSError) as error:
            raise PeersError(f"Ray says: {last_line(str(error))}") from None

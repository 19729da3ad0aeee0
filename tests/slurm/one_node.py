"""A real Slurm on this machine alone: controller, node and munge, without accounting, with two cards that are none.

It needs root, and Debian's slurm-wlm, slurm-wlm-basic-plugins and munge. Its configuration lies in /etc/slurm while it
runs, because jobs look there whatever SLURM_CONF says; a machine that has one already is left alone.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "setpriv")
CONFIGURATION = Path("/etc/slurm")
MARK = "# Written by warpseed's tests/slurm/one_node.py"
MUNGE_RUN = Path("/run/munge")
PARTITIONS = {"short": "Default=YES MaxTime=120", "cards": "MaxTime=600"}
"""Both are of the one node; jobs with a GPU are to go into the second."""
CARDS = 2
MEMORY_MB = 16_000


def missing() -> str | None:
    """Why no Slurm can be started here, in one sentence, or None where it can."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return (
            f"There is no {', '.join(absent)} here: apt-get install --no-install-recommends slurm-wlm "
            "slurm-wlm-basic-plugins munge."
        )
    if os.geteuid() != 0:
        return "Slurm's daemons are started as root, and this user is not root: use a container, or another machine."
    for path in (CONFIGURATION / "slurm.conf", CONFIGURATION / "gres.conf"):
        # One of an earlier run that was killed is replaced.
        if path.exists() and not path.read_text().startswith(MARK):
            return f"There is a {path} here: this machine belongs to a Slurm, which is left alone; use another machine."
    return None


def _configuration(folder: Path, cards: list[Path]) -> dict[str, str]:
    host = socket.gethostname().split(".")[0]
    cores = os.cpu_count() or 1
    partitions = [f"PartitionName={name} Nodes={host} State=UP {limits}" for name, limits in PARTITIONS.items()]
    lines = [
        "ClusterName=one",
        f"SlurmctldHost={host}(127.0.0.1)",
        "SlurmctldPort=26817",
        "SlurmdPort=26818",
        "AuthType=auth/munge",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SlurmUser=root",
        "SlurmdUser=root",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "AccountingStorageType=accounting_storage/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        "ReturnToService=2",
        # The Snakemake plugin asks squeue, which forgets a job after this many seconds.
        "MinJobAge=900",
        # Jobs are looked for, and begun, at once: a test has no time.
        "SchedulerParameters=sched_min_interval=100000,batch_sched_delay=1,sched_interval=5",
        "GresTypes=gpu",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd.log",
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={MEMORY_MB} Gres=gpu:fake:{len(cards)}",
        *partitions,
    ]
    gres = [f"Name=gpu Type=fake File={card}" for card in cards]
    return {"slurm.conf": "\n".join([MARK, *lines, ""]), "gres.conf": "\n".join([MARK, *gres, ""])}


def _wait(what: str, ready: Callable[[], bool], logs: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            told = "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in sorted(logs.glob("*.log")))
            raise TimeoutError(f"{what} is not there after {seconds:.0f} s\n{told}")
        time.sleep(0.1)


def _answers(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


@contextmanager
def _daemon(*command: str, folder: Path, user: str | None = None) -> Iterator[None]:
    """A process in the foreground, which ends with the block, or with this process however that ends."""
    alone = ["setpriv", "--pdeathsig", "TERM"]
    if user:
        alone += ["--reuid", user, "--regid", user, "--clear-groups"]
    with open(folder / f"{command[0]}.out.log", "w") as handle:
        process = subprocess.Popen(
            [*alone, *command], stdout=handle, stderr=handle, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Slurm, from the moment that its node is idle; afterwards nothing of it is left but logs in `folder`.

    Raises
    ------
    RuntimeError
        With the sentence of `missing`.
    TimeoutError
        When a daemon does not come up, with the ends of the logs.
    """
    reason = missing()
    if reason:
        raise RuntimeError(reason)
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    cards = [folder / f"card{number}" for number in range(CARDS)]
    for card in cards:
        subprocess.run(["mknod", "-m", "666", str(card), "c", "1", "3"], check=True)
    with ExitStack() as stack:
        if not _answers("munge", "-n"):
            _prepare_munge(stack)
            stack.enter_context(_daemon("munged", "--foreground", folder=folder, user="munge"))
            _wait("munge", lambda: bool(_answers("munge", "-n")), folder)
        for name, text in _configuration(folder, cards).items():
            stack.callback((CONFIGURATION / name).unlink)
            (CONFIGURATION / name).write_text(text)
        stack.enter_context(_daemon("slurmctld", "-D", folder=folder))
        _wait("slurmctld", lambda: "is UP" in _answers("scontrol", "ping"), folder)
        stack.enter_context(_daemon("slurmd", "-D", folder=folder))
        _wait("the node", lambda: "idle" in _answers("sinfo", "-h", "-o", "%t"), folder)
        stack.callback(subprocess.run, ["scancel", "--user=root"], check=False)
        yield


def _prepare_munge(stack: ExitStack) -> None:
    """The folder of munge's socket, which the system makes at its start."""
    if not MUNGE_RUN.exists():
        MUNGE_RUN.mkdir(mode=0o755)
        stack.callback(shutil.rmtree, MUNGE_RUN)
    account = pwd.getpwnam("munge")
    os.chown(MUNGE_RUN, account.pw_uid, account.pw_gid)

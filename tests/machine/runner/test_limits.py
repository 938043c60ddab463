"""CPU and memory limits: what the kernel does where it may, what we do where it may not, and that it is said which."""

import os
import pathlib
import signal

import pytest

from aliquot.core.model import Guarantee
from aliquot.local import limits
from aliquot.local.launch import ExitKind
from tests.machine.runner.workbench import Workbench, is_over

MIB = 1 << 20
EATS_MEMORY = "import os; print('ready', flush=True); data = []\nwhile True: data.append(os.urandom(1 << 20))"


def test_a_pod_over_its_memory_is_killed_by_the_kernel_and_told_as_such(kernel_bench: Workbench) -> None:
    kernel_bench.start_python(EATS_MEMORY, memory_bytes=64 * MIB)

    seen = kernel_bench.until("ended")

    assert seen.exit is not None
    assert seen.exit.kind is ExitKind.OUT_OF_MEMORY
    assert str(64 * MIB) in seen.exit.message
    assert seen.limits is not None
    assert seen.limits.memory.guarantee is Guarantee.KERNEL


def test_a_child_that_runs_out_of_memory_and_fails_its_command_is_told_as_such(kernel_bench: Workbench) -> None:
    (kernel_bench.folder / "eat.py").write_text(EATS_MEMORY)
    kernel_bench.start("python3 -I -S eat.py || exit 1", memory_bytes=64 * MIB)

    over = kernel_bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code) == (ExitKind.OUT_OF_MEMORY, 1)


def test_a_kill_from_outside_is_not_taken_for_a_lack_of_memory(kernel_bench: Workbench) -> None:
    kernel_bench.start("sleep 1000", memory_bytes=64 * MIB)
    pid = kernel_bench.until("running").pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    over = kernel_bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.signal) == (ExitKind.SIGNALLED, signal.SIGKILL)


def test_the_kernel_knows_the_cpu_quota_of_the_pod(kernel_bench: Workbench) -> None:
    kernel_bench.start("sleep 1000", milli_cpus=1500)

    seen = kernel_bench.until("running")

    assert seen.limits is not None
    assert seen.limits.cpu.guarantee is Guarantee.KERNEL
    parents = kernel_bench.limits.parents
    if kernel_bench.limits.version == 1:
        group = pathlib.Path(parents["cpu"], "p1")
        assert (group / "cpu.cfs_quota_us").read_text() == "150000\n"
        assert (group / "cpu.cfs_period_us").read_text() == "100000\n"
    else:
        group = pathlib.Path(parents["unified"], "p1")
        assert (group / "cpu.max").read_text() == "150000 100000\n"
    assert str(seen.pid) in (group / "cgroup.procs").read_text().split()


def test_what_hid_from_everything_but_its_group_is_found_after_its_supervisor(kernel_bench: Workbench) -> None:
    kernel_bench.start("(env -i setsid sleep 1000 &); sleep 1000")
    kernel_bench.wait_for(lambda: len(kernel_bench.runner.pids("p1")) >= 3)
    tree = kernel_bench.runner.pids("p1")

    kernel_bench.kill_supervisor()

    over = kernel_bench.until("ended").exit
    assert over is not None
    assert over.kind is ExitKind.UNKNOWN
    assert all(is_over(pid) for pid in tree)


def test_many_pods_that_start_and_end_at_once_share_the_folder_of_their_groups(kernel_bench: Workbench) -> None:
    pods = [f"p{number}" for number in range(20)]
    for pod in pods:
        kernel_bench.start("exit 0", pod=pod, memory_bytes=64 * MIB, milli_cpus=100)

    seen = [kernel_bench.until("ended", pod) for pod in pods]

    assert {one.limits and one.limits.memory.guarantee for one in seen} == {Guarantee.KERNEL}
    assert {one.exit and one.exit.code for one in seen} == {0}


def test_without_groups_the_memory_of_the_whole_tree_is_watched(bench: Workbench) -> None:
    (bench.folder / "eat.py").write_text(EATS_MEMORY.replace("while True", "while len(data) < 60") + "\ninput()")
    bench.start("mkfifo hold; for i in 1 2; do python3 -I -S eat.py <> hold & done; wait", memory_bytes=100 * MIB)

    seen = bench.until("ended")

    assert seen.exit is not None
    assert seen.exit.kind is ExitKind.OUT_OF_MEMORY
    assert seen.limits is not None
    assert seen.limits.memory.guarantee is Guarantee.DETECTED
    assert "watched" in seen.limits.memory.mechanism


def test_memory_that_processes_share_counts_once_where_it_is_watched(bench: Workbench) -> None:
    program = (
        "import os, time; data = os.urandom(60 << 20)\n"
        "for _ in range(3):\n if os.fork() == 0: break\n"
        "print('ready', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.05)"
    )
    bench.start_python(program, memory_bytes=110 * MIB)
    bench.wait_for(lambda: bench.text().count("ready") == 4)
    watched = bench.runner.pids("p1")
    # The supervisor has nothing to do but to watch the memory, so that its turns are the watch's.
    turns = _turns(bench.supervisor())
    bench.wait_for(lambda: _turns(bench.supervisor()) >= turns + 5)

    assert bench.see().state == "running"
    assert len(watched) == 4
    (bench.folder / "go").touch()
    over = bench.until("ended").exit
    assert over is not None
    assert over.code == 0


def test_without_groups_a_pod_is_bound_to_cpus_that_others_are_not_bound_to(bench: Workbench) -> None:
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        pytest.skip("takes two CPUs")
    bench.start("grep Cpus_allowed_list /proc/self/status; sleep 1000", pod="a", milli_cpus=500)
    bench.start("grep Cpus_allowed_list /proc/self/status; sleep 1000", pod="b", milli_cpus=1000)
    for pod in "ab":
        bench.wait_for_text("Cpus_allowed_list", pod)

    given = [bench.text(pod).split()[-1] for pod in "ab"]

    assert given == [str(available[0]), str(available[1])]
    enforced = bench.see("a").limits
    assert enforced is not None
    assert enforced.cpu.guarantee is Guarantee.ADVISORY


def test_a_pod_without_limits_says_that_none_were_asked_for(bench: Workbench) -> None:
    bench.start("exit 0")

    enforced = bench.until("ended").limits

    assert enforced is not None
    assert (enforced.cpu.guarantee, enforced.memory.guarantee) == (Guarantee.NONE, Guarantee.NONE)


def _turns(pid: int) -> int:
    """How often a process went to sleep."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("voluntary_ctxt_switches"))


class FakeKernel:
    """A folder that looks like a delegated v2 group: what is written into it stays there to be looked at."""

    def __init__(self, folder: pathlib.Path, controllers: str = "cpuset cpu io memory pids") -> None:
        self.root = folder / "cgroup"
        self.own = self.root / "user.slice" / "ours"
        self.own.mkdir(parents=True)
        for place in (self.own, self.own / "aliquot"):
            place.mkdir(exist_ok=True)
            (place / "cgroup.controllers").write_text(controllers + "\n")
            (place / "cgroup.subtree_control").write_text("")
            (place / "cgroup.procs").write_text("")
        self.process = folder / "self"
        self.process.mkdir()
        (self.process / "cgroup").write_text("0::/user.slice/ours\n")
        (self.process / "mountinfo").write_text(
            f"35 24 0:30 / {self.root} rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
        )

    def group(self, pod: str, *files: str) -> pathlib.Path:
        """A pod's group with the files that the kernel would put there."""
        folder = self.own / "aliquot" / pod
        folder.mkdir()
        for name in files:
            (folder / name).write_text("")
        return folder

    def probe(self) -> limits.Limits:
        """What a process in that group would find."""
        return limits.probe("aliquot", process=str(self.process))


def test_a_delegated_v2_group_is_found_and_hands_its_controllers_down(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path)

    found = kernel.probe()

    assert (found.version, found.parents) == (2, {"unified": str(kernel.own / "aliquot")})
    assert (kernel.own / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (kernel.own / "aliquot" / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert found.describe() == "cgroup v2 (kernel)"


def test_a_process_alone_in_its_v2_group_steps_aside_first(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path)
    (kernel.own / "cgroup.procs").write_text(f"{os.getpid()}\n")

    kernel.probe()

    assert (kernel.own / "aliquot.server" / "cgroup.procs").read_text() == "0"


def test_v2_limits_are_written_as_the_kernel_reads_them(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path)
    group = kernel.group("p1", "memory.swap.max", "memory.oom.group")
    plan = kernel.probe().plan("p1", milli_cpus=2500, memory_bytes=64 * MIB, cpus=[0])

    state = limits.create(plan)

    written = {file.name: file.read_text() for file in group.iterdir()}
    assert written == {
        "cpu.max": "250000 100000",
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
    }
    assert (state["cpu"][0], state["memory"][0], state["cpus"], state["is_watched"]) == (
        "kernel",
        "kernel",
        None,
        False,
    )
    assert limits.join_files(state["groups"]) == [str(group / "cgroup.procs")]


def test_v2_kills_for_memory_are_counted_from_its_events(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path)
    group = kernel.group("p1")
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n")
    state = limits.create(kernel.probe().plan("p1", milli_cpus=None, memory_bytes=MIB, cpus=[]))

    assert limits.count_memory_kills(state) == 2


def test_v2_that_offers_memory_alone_leaves_the_cpu_limit_to_affinity(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path, controllers="memory pids")
    kernel.group("p1")
    found = kernel.probe()
    (kernel.own / "aliquot" / "p1" / "cpu.max").mkdir()  # whatever the kernel refuses raises OSError

    state = limits.create(found.plan("p1", milli_cpus=1000, memory_bytes=MIB, cpus=[1]))

    assert found.describe() == "cgroup v2 (kernel); cpu without it"
    assert (kernel.own / "cgroup.subtree_control").read_text() == "+memory"
    assert (state["cpu"][0], state["cpus"], state["memory"][0]) == ("advisory", [1], "kernel")


def test_v2_that_was_not_delegated_is_left_alone(tmp_path: pathlib.Path) -> None:
    kernel = FakeKernel(tmp_path, controllers="")

    found = kernel.probe()

    assert (found.version, found.parents) == (0, {})
    assert "affinity" in found.describe()
    assert (kernel.own / "cgroup.subtree_control").read_text() == ""

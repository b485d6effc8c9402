# SPDX-License-Identifier: Apache-2.0
"""Tensors with names: what one program makes another one maps, through the whole stack."""
import ctypes
import os
import signal
import socket

from stack import BUILD, Agent
from tensors import MIB, Failed, Program, Sidecar, bytes_of, folder, store_of, tensors, wait_for


def test_what_one_program_writes_another_reads():
    with tensors() as s:
        owner, reader = s.program(), s.program()
        owner("a = vcuda.create('a', 'f32', (1024, 1024))")
        assert owner("a.made, a.owned, a.writable, a.sealed, a.nbytes") == (True, True, True, False, 4 * MIB)
        owner("fill(a, 7)")
        owner("a.seal()")
        reader("a = vcuda.get('a')")
        assert reader("a.shape, a.dtype, a.writable, a.sealed, every(a)") == ((1024, 1024), "f32", False, True, 7)
        assert owner("every(a)") == 7
        owner.end()
        # Held by the reader, it outlives its owner.
        assert reader("every(a)") == 7
        late = s.program()
        late("a = vcuda.get('a')")
        assert late("every(a)") == 7
        reader.end()
        late.end()


def test_nobody_waits_until_the_driver_has_imported_them():
    """It takes long for hundreds. They are there for what comes after; what is closed before is never imported."""
    with folder() as path:
        hold = os.path.join(path, "hold")
        with tensors("--set", "store.pool_bytes=0", driver=os.path.join(BUILD, "stack", "libimporting-driver.so"),
                     agent_env={"VCUDA_SOFTGPU_IMPORT_HOLD": hold}) as s:
            owner, reader, other = s.program(), s.program(), s.program()
            owner("t = [vcuda.create(f't{i}', 'i32', (4,)) for i in range(30)]")
            owner("[fill(x, i) for i, x in enumerate(t)]")
            owner("[x.seal() for x in t]")
            with open(hold, "w"):
                pass
            reader("t = vcuda.get([f't{i}' for i in range(30)])", 20)
            assert reader("[x.shape == (4,) and x.sealed for x in t]") == [True] * 30
            other.fails("vcuda.get([f't{i}' for i in range(29)] + ['nobody'])", 500, "default/nobody")
            os.unlink(hold)
            assert reader("[every(x) for x in t]") == list(range(30))
            owner("[x.close() for x in t]")
            owner.end()
            assert reader("[every(x) for x in t]") == list(range(30))
            reader.end()
            wait_for(lambda: not any(bytes_of(s.agent).values()), 20, "the memory of all is back")
            other.end()


def test_a_kernel_that_writes_a_sealed_tensor_ends_with_700_and_changes_nothing():
    with tensors() as s:
        owner = s.program()
        readers = [s.program() for _ in range(3)]
        owner("a = vcuda.create('a', 'u8', (2 << 20,))")
        owner("put(a, 1)")
        owner("fill(a, 9)")
        owner("a.seal()")
        for reader in readers:
            reader("a = vcuda.get('a')")
        readers[0].fails("put(a, 1)", 700)
        for one in (owner, *readers[1:]):
            assert one("every(a)") == 9
        owner.fails("put(a, 1)", 700)
        assert readers[1]("every(a)") == 9


def test_a_program_cannot_give_itself_more():
    with tensors(agent_env={"VCUDA_SOFTGPU_DEVICES": "2"}) as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (2 << 20,)); fill(a, 9); let(a, 1); let(a, 3); put(a, 0x09090909); a.seal()")
        writer = s.program()
        writer("b = vcuda.create('b', 'u8', (2 << 20,)); fill(b, 9); let(b, 3, 1); b.seal(); context(1)")
        writer.fails("put(b, 1)", 700)
        writer.close_stdin()
        for line in ("let(a, 1); let(a, 3)", "let(a, 3, 1); context(1)"):
            reader = s.program()
            reader("a = vcuda.get('a')")
            reader("context(0); " + line)
            assert reader("every(a)") == 9
            reader.fails("put(a, 1)", 700)
            reader.close_stdin()
            assert owner("every(a)") == 9, line
        owner.end()


def test_nor_does_a_copy_or_a_fill():
    """Of any kind; a worker that crashed would be 911."""
    with tensors() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (2 << 20,)); fill(a, 9); a.seal()")
        for line in ("upload(a, b'12345678')", "upload(a, bytes(2 << 20))", "fill(a, 1)",
                     "do(cuda.cuMemsetD32_v2(ctypes.c_uint64(a.data), 1, ctypes.c_size_t(4))); do(cuda.cuCtxSynchronize())",
                     "do(cuda.cuMemcpyDtoD_v2(ctypes.c_uint64(a.data), ctypes.c_uint64(a.data + 4096), ctypes.c_size_t(64)));"
                     " do(cuda.cuCtxSynchronize())",
                     "do(cuda.cuStreamWriteValue32_v2(None, ctypes.c_uint64(a.data), 1, 0)); do(cuda.cuCtxSynchronize())"):
            reader = s.program()
            reader("a = vcuda.get('a')")
            reader.fails(line + "; do(cuda.cuCtxSynchronize())", 700)
            reader.close_stdin()
            assert owner("every(a)") == 9, line
        owner.end()


def test_a_store_that_is_killed_loses_no_byte():
    with tensors() as s:
        owner, reader = s.program(), s.program()
        owner("a = vcuda.create('a', 'u8', (3 << 20,), keep=True)")
        owner("fill(a, 5)")
        owner("a.seal()")
        reader("a = vcuda.get('a')")
        for _ in range(3):
            store = store_of(s.agent)
            os.kill(store, signal.SIGKILL)
            wait_for(lambda: store_of(s.agent) != store, 30, "there is another store")
            fresh = s.program()
            fresh("a = vcuda.get('a')")
            assert fresh("every(a)") == 5 and reader("every(a)") == 5
            fresh.end()
            assert reader("vcuda.stat('a')['holders']") in (2, 3)


def cut_off(store):
    """Front and store lose each other, and both live: what joins the store to others is shut down, but
    for descriptor 3, the supervisor."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd, cut = os.pidfd_open(store), 0
    for fd in os.listdir(f"/proc/{store}/fd"):
        if fd == "3" or not os.readlink(f"/proc/{store}/fd/{fd}").startswith("socket:"):
            continue
        taken = libc.syscall(438, pidfd, int(fd), 0)  # pidfd_getfd
        assert taken >= 0, os.strerror(ctypes.get_errno())
        with socket.socket(fileno=taken) as link:
            if link.type & socket.SOCK_SEQPACKET == socket.SOCK_SEQPACKET:
                link.shutdown(socket.SHUT_RDWR)
                cut += 1
    os.close(pidfd)
    assert cut == 1


def answers(program):
    try:
        return program("vcuda.stat('a')['holders']") > 0
    except Failed as error:
        assert error.status == 802
        return False


def test_front_and_store_that_lost_each_other_are_joined_again():
    with tensors() as s:
        owner = s.program()
        owner("a = vcuda.create('a', 'u8', (2 << 20,), keep=True); fill(a, 4); a.seal()")
        store = store_of(s.agent)
        for _ in range(3):
            cut_off(store)
            wait_for(lambda: answers(owner), 30, "the store answers")
            assert owner("vcuda.stat('a')['holders'], every(a)") == (1, 4)
        assert store_of(s.agent) == store


def test_a_reload_keeps_tensors_and_takes_the_new_limits():
    with folder() as path:
        file = os.path.join(path, "agent.yaml")
        with open(file, "w") as out:
            out.write("store:\n  bytes: 16MiB\n")
        agent = Agent(path, "--config", file)
        sidecar = Sidecar(path, agent)
        one, two = Program(sidecar.socket), Program(sidecar.socket)
        one("a = vcuda.create('a', 'u8', (4 << 20,)); fill(a, 3); a.seal()")
        two("a = vcuda.get('a')")
        two.fails("vcuda.create('b', 'u8', (16 << 20,))", 2, "store.bytes")
        with open(file, "w") as out:
            out.write("store:\n  bytes: 64MiB\n")
        store = store_of(agent)
        os.kill(agent.pid, signal.SIGHUP)
        wait_for(lambda: store_of(agent) != store, 30, "there is another store")
        two("b = vcuda.create('b', 'u8', (16 << 20,))")
        assert one("every(a)") == 3 and two("every(a)") == 3
        assert two("vcuda.stat('a')['holders']") == 2
        one.end()
        late = Program(sidecar.socket)
        late("a = vcuda.get('a')")
        assert late("every(a)") == 3

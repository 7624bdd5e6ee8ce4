"""Runs a program, lets something befall it, and watches how it ends."""

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import uuid

def patience(seconds):
    """So many, and as many times more as this machine is slower or more crowded now than a calm
    one, on which the loop takes 0.03 s."""
    begin = time.monotonic()
    for _ in range(500_000):
        pass
    return seconds * min(10.0, max(1.0, (time.monotonic() - begin) / 0.03))


longest_s = 180.0  # that any run may take to end by itself
tick_s = 0.5
mark_variable = "STEPCAST_FAULTS_RUN"
signal_codes = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def state_of(process):
    """One letter, as ps(1) has it."""
    with open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rsplit(b")", 1)[1].split()[0]


class Lost(Exception):
    """A promise that was not kept."""


class Skipped(Exception):
    """A writer that this machine lacks something for."""


class Run:
    """A program in the background, known by a mark in the environment of all it starts."""

    def __init__(self, command, folder, environment=None):
        self.command = command
        self.mark = uuid.uuid4().hex
        self.output = tempfile.TemporaryFile(dir=folder)
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            start_new_session=True,
            env={**os.environ, **(environment or {}), mark_variable: self.mark})

    def processes(self):
        """Those that live, the first one first."""
        wanted = f"{mark_variable}={self.mark}".encode()
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    if wanted not in file.read().split(b"\0"):
                        continue
                if state_of(number) not in (b"Z", b"X"):
                    found.append(int(number))
            except OSError:  # it has ended
                continue
        return sorted(found, key=lambda number: (number != self.process.pid, number))

    def children(self):
        return [number for number in self.processes() if number != self.process.pid]

    def end(self):
        """The exit code and what was said; Lost where it does not end, or leaves processes."""
        code, waited_s = None, 0.0
        while code is None:
            try:
                code = self.process.wait(tick_s)
            except subprocess.TimeoutExpired:
                # Of this program's own time, and not while somebody else has stopped that one.
                waited_s += 0.0 if state_of(self.process.pid) == b"T" else tick_s
            if waited_s > longest_s and waited_s > patience(longest_s):
                self.kill_all()
                raise Lost(f"did not end within {waited_s:.0f} s")
        until = time.monotonic() + patience(60.0)
        while left := self.processes():
            if time.monotonic() > until:
                self.kill_all()
                raise Lost(f"{len(left)} processes are left")
            time.sleep(0.02)
        self.output.seek(0)
        said = self.output.read().decode(errors="replace")
        self.output.close()
        if code == 1 or "internal error" in said:
            raise Lost(f"exit {code}: {said[-300:]}")
        if code > 0 and code not in signal_codes.values() and not said.strip():
            raise Lost(f"exit {code} without a sentence")
        return code, said

    def kill_all(self):
        for number in self.processes():
            send(number, signal.SIGKILL)
        self.process.wait()


def send(number, what):
    try:
        os.kill(number, what)
    except ProcessLookupError:
        pass


def done(command, folder, environment=None):
    """A run that nothing befalls."""
    code, said = Run(command, folder, environment).end()
    if code != 0:
        raise Lost(f"exit {code} where nothing befell it: {said[-300:]}")
    return said


def kill(run, _):
    send(run.process.pid, signal.SIGKILL)
    return {-signal.SIGKILL}


def ask_to_end(run, dice):
    what = dice.choice(sorted(signal_codes))
    send(run.process.pid, what)
    return {signal_codes[what], -what}  # the latter: before it has begun


def kill_child(run, dice):
    children = run.children()
    if not children:
        return set()
    send(dice.choice(children), signal.SIGKILL)
    return {6}


def pause(run, dice):
    number = dice.choice(run.processes() or [0])
    if number:
        send(number, signal.SIGSTOP)
        time.sleep(dice.uniform(0.0, 0.3))
        send(number, signal.SIGCONT)
    return set()


def hang(run, dice):
    children = run.children()
    if not children:
        return set()
    send(dice.choice(children), signal.SIGSTOP)
    return {6}


def befall(run, fault, dice, span_s):
    """Some time in the run's life; what it said. Codes beside 0 are those of the fault."""
    time.sleep(dice.uniform(0.0, 1.1 * span_s))
    allowed = fault(run, dice)
    code, said = run.end()
    if code != 0 and code not in allowed:
        raise Lost(f"exit {code} after {fault.__name__}: {said[-300:]}")
    return code, said


class Proxy:
    """Stands between two nodes; one connection is reset, or falls silent, after some bytes."""

    def __init__(self, port, most, resets):
        self.to, self.left, self.resets = port, most, resets
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open, self.struck = [], False
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        try:
            while data := one.recv(4096):
                self.left -= len(data)
                if self.left <= 0 and not self.struck:
                    self.struck = True
                    if self.resets:
                        for end in (one, other):
                            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack("ii", 1, 0))
                            end.shutdown(socket.SHUT_RD)
                            end.close()
                    return  # else: it stays open and nothing comes
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for end in [self.listener, *self.open]:
            end.close()


def free_port():
    """Below those that the kernel gives to whoever asks for any; another one each time, also where
    the same seed runs beside this. It may be somebody else's when it is asked for."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def partial_files(folder):
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".partial")]


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


class Folder:
    """One for each run."""

    def __init__(self, under):
        self.path = tempfile.mkdtemp(dir=under)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def dice_of(seed, number):
    return random.Random(f"{seed}/{number}")

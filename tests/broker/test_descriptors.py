import os
import threading

from balog.common.storage.local_files import write_all


def test_a_full_non_blocking_pipe_is_waited_for():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    data = os.urandom(1 << 20)
    got = bytearray()

    def drain():
        while chunk := os.read(read_end, 65536):
            got.extend(chunk)

    thread = threading.Thread(target=drain)
    thread.start()
    write_all(write_end, data)
    os.close(write_end)
    thread.join()
    os.close(read_end)
    assert got == data

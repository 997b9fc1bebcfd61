"""Valid files, cut off and with bytes changed, and files of other kinds with sizes that are lies."""

import random
import struct
import zipfile
import zlib


def cut(name, data, count):
    head, dot, ending = name.rpartition(".")
    for i in range(count):
        at = len(data) * i // count
        yield f"cut-{head}-{at}{dot}{ending}", data[:at]


def changed(name, data, count, seed):
    head, dot, ending = name.rpartition(".")
    draw = random.Random(f"{seed}-{name}")
    for i in range(count):
        bytes_ = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 8])):
            # The beginning says more than the rest.
            at = draw.randrange(min(len(bytes_), draw.choice([64, 512, len(bytes_)])))
            bytes_[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, bytes_[at] ^ 1 << draw.randrange(8)])
        yield f"changed-{head}-{i}{dot}{ending}", bytes(bytes_)


def both(name, data, count, seed):
    yield from cut(name, data, count // 3)
    yield from changed(name, data, count - count // 3, seed)


def archived(archive, endings):
    """The members of an archive of reference cases with one of these endings, under names of their own."""
    with zipfile.ZipFile(archive) as cases:
        for name in sorted(cases.namelist()):
            if name.endswith(endings):
                yield name.replace("/", "-"), cases.read(name)


def networks(archive, network, weights, seed):
    """Networks of two files with these endings, one in ten of the cases, each with its weights beside it. Of some the weights are cut."""
    with zipfile.ZipFile(archive) as cases:
        names = sorted(name for name in cases.namelist() if name.endswith(network))
        for name in names[::10]:
            data = cases.read(name.replace(network, weights))
            for i, (changed_name, changed_data) in enumerate(both(name.replace("/", "-"), cases.read(name), 6, seed)):
                yield changed_name, changed_data
                yield changed_name.replace(network, weights), data[: len(data) // (1 + i % 2)]


def png(width, height, rows, depth=8, colour=0):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pictures():
    for width, height in ((0, 0), (1, 1), (0, 1), (2**31 - 1, 1), (2**31 - 1, 2**31 - 1), (65535, 65535), (13000, 13000)):
        yield f"claims-{width}-{height}.png", png(width, height, bytes(1000))
    yield "bomb.png", png(12000, 12000, bytes(12001 * 12000))
    for width, height in ((0, 0), (-1, -1), (2**31 - 1, 2**31 - 1), (1, 2**30)):
        info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
        yield f"claims-{width}-{height}.bmp", b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info + bytes(12)
    for width, height in ((0, 0), (65535, 65535)):
        yield f"claims-{width}-{height}.gif", b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(20)


def npy(header, data=b"", version=(1, 0)):
    text = header.encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def arrays():
    for descr in ("<f4", "<U0", "|S0", "<U1000000000", "|V8", "<f16", "<c16", ">i8", "|b1", "|O", "[('a', '<f4')]", "<m8"):
        shown = descr if descr.startswith("[") else f"'{descr}'"
        for shape in ("", "4,", "0,", "1000000000,", "4294967296, 4294967296", "-1,", "0, 4294967296", "x,"):
            header = f"{{'descr': {shown}, 'fortran_order': False, 'shape': ({shape}), }}\n"
            name = f"array-{descr.encode().hex()[:16]}-{shape.encode().hex()[:16]}.npy"
            yield name, npy(header, bytes(16))
    yield "array-brackets.npy", npy("{'descr': " + "[" * 20000 + "\n")
    yield "array-nothing.npy", npy("")
    yield "array-version.npy", npy("{}", version=(3, 0))

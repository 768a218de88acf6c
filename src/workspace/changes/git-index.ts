/** A file as it was when git last compared it with its index. */
export interface IndexedFile {
  /** Modulo 2^32. */
  readonly size: number;
  /** Modulo 2^32. 0 in an index of Git for Windows. */
  readonly inode: number;
  /** Time of creation in whole milliseconds since 1970. Only Git for Windows writes it. */
  readonly created: number | undefined;
}

/** An entry of git's index. */
export interface IndexEntry extends IndexedFile {
  /** Name of the blob, in hex. */
  readonly id: string;
  readonly isLink: boolean;
  readonly isExecutable: boolean;
}

const headerBytes = 12;
/** Bytes of an entry before the name of its blob. */
const statBytes = 40;
const longName = 0xfff;

/**
 * Finds entries by path and file in the bytes of an index file (versions 2 to 4). Merge conflicts, submodules and
 * entries of a shared index file are not found.
 */
export function findIndexEntries(
  index: Buffer,
  isWanted: (path: string, file: IndexedFile) => boolean,
  idBytes: number,
): Map<string, IndexEntry> {
  const found = new Map<string, IndexEntry>();
  if (index.length < headerBytes || index.toString("latin1", 0, 4) !== "DIRC") return found;
  const version = index.readUInt32BE(4);
  const count = index.readUInt32BE(8);
  let at = headerBytes;
  let path: Buffer = Buffer.alloc(0);
  for (let entry = 0; entry < count && at + statBytes + idBytes + 2 <= index.length; entry++) {
    const start = at;
    const flags = index.readUInt16BE(start + statBytes + idBytes);
    at += statBytes + idBytes + ((flags & 0x4000) === 0 ? 2 : 4);
    let dropped = path.length;
    if (version === 4) [dropped, at] = readOffset(index, at);
    const length = flags & longName;
    const end = version === 4 || length === longName ? index.indexOf(0, at) : at + length;
    if (end === -1) break;
    const name = index.subarray(at, end);
    path = version === 4 ? Buffer.concat([path.subarray(0, path.length - dropped), name]) : name;
    at = version === 4 ? end + 1 : start + ((end - start + 8) & ~7);
    const kind = (index.readUInt32BE(start + 24) >> 12) & 0xf;
    if ((flags & 0x3000) !== 0 || kind === submoduleKind) continue;
    const text = path.toString("utf8");
    const file = readFile(index, start);
    if (!isWanted(text, file)) continue;
    found.set(text, {
      ...file,
      id: index.toString("hex", start + statBytes, start + statBytes + idBytes),
      isLink: kind === linkKind,
      isExecutable: (index.readUInt32BE(start + 24) & 0o100) !== 0,
    });
  }
  return found;
}

/** Reads the metadata of an entry's file. Instead of the time of a change, Git for Windows has that of creation. */
function readFile(index: Buffer, start: number): IndexedFile {
  const inode = index.readUInt32BE(start + 20);
  const size = index.readUInt32BE(start + 36);
  if (inode !== 0) return { inode, size, created: undefined };
  const milliseconds = Math.floor(index.readUInt32BE(start + 4) / 1e6);
  return { inode, size, created: index.readUInt32BE(start) * 1_000 + milliseconds };
}

const linkKind = 0o12;
const submoduleKind = 0o16;

/** Reads a number in git's offset encoding, with the position after it. */
function readOffset(bytes: Buffer, start: number): [value: number, end: number] {
  let at = start;
  let byte = bytes[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = bytes[at++] ?? 0;
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return [value, at];
}

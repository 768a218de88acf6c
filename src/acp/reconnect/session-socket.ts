import { chmod, lstat, mkdir, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { UserError } from "../../base/errors.ts";

/** The folder of the sockets through which processes of one user connect. */
export interface SocketPlace {
  /** Only the user may enter it. */
  readonly folder: string;
  readonly platform: NodeJS.Platform;
}

/** A socket on which a process listens. */
export interface ListeningSocket {
  close(): Promise<void>;
}

/** Longest path in bytes; macOS accepts 103, Linux 107. */
const pathLimit = 103;

/** Listens for other processes of the same user. Throws {@link UserError} where that is not possible or not private. */
export async function listenForProcesses(
  place: SocketPlace,
  onConnection: (socket: Socket) => void,
): Promise<ListeningSocket> {
  const path = toPath(place, process.pid);
  await mkdir(place.folder, { recursive: true, mode: 0o700 });
  await assertPrivate(place.folder);
  // A killed process with the same id may have left one.
  await rm(path, { force: true });
  const server = createServer(onConnection);
  server.listen(path);
  await once(server, "listening");
  await chmod(path, 0o600);
  return {
    close: async () => {
      server.close();
      await rm(path, { force: true });
    },
  };
}

/** Connects to the process; undefined when it does not listen. Throws {@link UserError} if the folder is not private. */
export async function connectToProcess(place: SocketPlace, pid: number): Promise<Socket | undefined> {
  if (place.platform === "win32") return undefined;
  try {
    await assertPrivate(place.folder);
    const socket = connect(toPath(place, pid));
    await once(socket, "connect");
    return socket;
  } catch (error) {
    if (error instanceof UserError) throw error;
    // Missing or left by a killed process.
    return undefined;
  }
}

function toPath({ folder, platform }: SocketPlace, pid: number): string {
  if (platform === "win32")
    throw new UserError("On Windows no other process can join a turn, because its pipes are not private.");
  const path = join(folder, `${pid}.sock`);
  if (Buffer.byteLength(path) <= pathLimit) return path;
  throw new UserError(
    `The path of the socket is too long: ${path}. Set XDG_RUNTIME_DIR to a folder with a shorter path.`,
  );
}

/** Throws unless the folder is a real folder that belongs to the user and that nobody else may enter. */
async function assertPrivate(folder: string): Promise<void> {
  const found = await lstat(folder);
  const isOwn = found.isDirectory() && found.uid === process.getuid?.();
  if (!isOwn) throw new UserError(`${folder} is not a folder of yours. Remove it, then try again.`);
  if ((found.mode & 0o077) === 0) return;
  throw new UserError(`Others may enter ${folder}. Run chmod 700 ${folder}, then try again.`);
}

import { UserError, codeOf, messageOf } from "../../base/errors.ts";

/** An explanation and advice for the user, by system error code. */
const reasons: Record<string, [happened: string, next: string]> = {
  ENOSPC: ["the disk is full", "Free some space and try again."],
  EDQUOT: ["the disk quota is used up", "Free some space and try again."],
  EFBIG: ["the file may not grow any further", "Raise the file size limit (ulimit -f) and try again."],
  EROFS: ["the disk is read-only", "Make it writable, or set XDG_DATA_HOME to a folder that is."],
  EACCES: [
    "permission was denied",
    "Give this user the right to read and write there, or set XDG_DATA_HOME to a folder of theirs.",
  ],
  EPERM: [
    "permission was denied",
    "Give this user the right to read and write there, or set XDG_DATA_HOME to a folder of theirs.",
  ],
  ENOENT: [
    "no folder can be made there",
    "Set HOME or XDG_DATA_HOME to a place where one can, then try again.",
  ],
  ENOTDIR: ["there is a file where a folder should be", "Move that file away and try again."],
  EEXIST: ["there is a file where a folder should be", "Move that file away and try again."],
  ELOOP: ["the path contains a symbolic link", "Replace it by a real folder and try again."],
  EMFILE: ["too many files are open", "Close other programs or raise the limit (ulimit -n), then try again."],
  ENFILE: ["the system has too many files open", "Close other programs, then try again."],
  EIO: ["the disk reported an error", "Check the disk, then try again."],
  EUCLEAN: ["the file system is damaged", "Check the disk, then try again."],
  EBADMSG: ["the disk returned damaged data", "Check the disk, then try again."],
  ESTALE: ["the folder is gone from its server", "Mount it again, then try again."],
  ENOKEY: ["the encrypted folder is locked", "Unlock it, then try again."],
};

/** Converts a system error to a {@link UserError}; returns any other value unchanged, because it is a bug. */
export function toStoreError(thrown: unknown, folder: string): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof UserError || code === undefined || !/^E[A-Z0-9]+$/.test(code)) return thrown;
  const [happened, next] = reasons[code] ?? [messageOf(thrown), "Check that folder, then try again."];
  return new UserError(`Sessions cannot be stored in ${folder}: ${happened} (${code}). ${next}`, {
    cause: thrown,
  });
}

/** Runs file operations in a folder of the store. System errors become a {@link UserError}. */
export async function withStoreErrors<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw toStoreError(thrown, folder);
  }
}

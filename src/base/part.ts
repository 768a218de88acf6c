import { messageOf, UserError } from "./errors.ts";

/**
 * Loads a part of the program where what goes wrong would be taken for the fault of somebody else: the person, a
 * provider, a server, a file. Rejects with a {@link UserError}.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new UserError(partProblem(error), { cause: error });
  }
}

/** What happened where a part of the program is missing or broken on the disk. */
export function partProblem(error: unknown): string {
  const [reason = ""] = messageOf(error).split("\n");
  return `A part of the program could not be loaded: ${reason}. It may be under replacement: try again, and if that stays so, install Fairlead anew.`;
}

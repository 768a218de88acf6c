import { partProblem, UserError } from "./errors.ts";

/**
 * Loads a part of the program where what goes wrong would be taken for the fault of somebody else: the person, a
 * provider, a server, a file. Rejects with a {@link UserError}.
 */
export async function importModule<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new UserError(partProblem(error), { cause: error });
  }
}

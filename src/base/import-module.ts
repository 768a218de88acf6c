import { importProblem, UserError } from "./errors.ts";

/**
 * Imports a module. Rejects with a {@link UserError}, so that the failure is not blamed on a provider, a server or a
 * file.
 */
export async function importModule<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new UserError(importProblem(error), { cause: error });
  }
}

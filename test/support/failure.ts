import { RequestError } from "@agentclientprotocol/sdk";

export interface Failure {
  code: number;
  message: string;
  data: unknown;
}

/** Returns the error response of a request. Throws if it succeeded or failed in another way. */
export async function expectFailure(answer: Promise<unknown>): Promise<Failure> {
  const outcome = await answer.then(
    (result) => new Error(`An error was expected, but the answer is ${JSON.stringify(result)}.`),
    (error: unknown) => error,
  );
  if (!(outcome instanceof RequestError)) throw outcome;
  const { code, message, data } = outcome;
  return { code, message, data };
}

import type { ClientRequest, IncomingMessage } from "node:http";

/** The head of the answer to a request; rejects where none comes, however the connection ends. */
export function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("response", resolve);
    sent.on("error", reject);
    // An answer of another protocol (101) ends it without an error.
    sent.on("close", () => reject(new Error("The server ended the connection without an answer.")));
  });
}

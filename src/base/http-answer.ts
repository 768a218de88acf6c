import type { ClientRequest, IncomingMessage } from "node:http";

/** Waits for the response head. Rejects when none arrives, however the connection ends. */
export function waitForResponse(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
    // A protocol switch (101) closes the connection without an error.
    request.on("close", () => reject(new Error("The server ended the connection without an answer.")));
  });
}

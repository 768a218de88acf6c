import type { IncomingMessage, ServerResponse } from "node:http";
import { listen, type Listening } from "../../support/listen.ts";

/** A web server on this computer. */
export interface WebServer extends Listening {
  /** The requests, as method and path, in order. */
  readonly requests: string[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a server that answers by path; other paths are not found. */
export async function webServer(answers: Readonly<Record<string, Answer>>): Promise<WebServer> {
  const requests: string[] = [];
  const server = await listen((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const answer = answers[(request.url ?? "").split("?")[0] ?? ""];
    if (answer === undefined) response.writeHead(404, { "content-type": "text/plain" }).end("not here");
    else answer(request, response);
  });
  return { ...server, requests };
}

/** Responds with this body. */
export const body =
  (
    content: string | Uint8Array,
    headers: Record<string, string> = { "content-type": "text/plain" },
  ): Answer =>
  (_, response) =>
    void response.writeHead(200, headers).end(content);

export const redirect =
  (location: string): Answer =>
  (_, response) =>
    void response.writeHead(302, { location }).end();

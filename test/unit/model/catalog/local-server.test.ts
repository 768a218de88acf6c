import { describe, expect, test } from "vitest";
import type { HttpAnswer, Send } from "../../../../src/model/http.ts";
import { describeNotRunning, retryLocal } from "../../../../src/model/catalog/local-server.ts";

const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
const answer: HttpAnswer = {
  status: 200,
  header: () => null,
  get body(): never {
    throw new Error("nobody reads it");
  },
  cut: () => {},
};

/** Sends to an address, and returns the number of attempts. */
async function triesOf(address: string, failures: readonly Error[]): Promise<[number, unknown]> {
  let tries = 0;
  const send: Send = async () => {
    const failure = failures[tries++];
    if (failure !== undefined) throw failure;
    return answer;
  };
  const request = { headers: {}, signal: new AbortController().signal };
  const end: unknown = await retryLocal(send)(new URL(address), request).catch((error: unknown) => error);
  return [tries, end];
}

describe("a refused connection", () => {
  test("is retried once on this computer, where the server may be starting", async () => {
    for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
      expect(await triesOf(`http://${host}:11434/v1`, [refused])).toEqual([2, answer]);
      expect(await triesOf(`http://${host}:11434/v1`, [refused, refused])).toEqual([2, refused]);
    }
  });

  test("has the usual retries elsewhere, like other failures", async () => {
    expect(await triesOf("https://models.example.com/v1", [refused])).toEqual([1, refused]);
    expect(await triesOf("http://localhost.example.com/v1", [refused])).toEqual([1, refused]);
    const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });
    expect(await triesOf("http://localhost:1/v1", [reset])).toEqual([1, reset]);
  });

  test.each([
    ["ollama", "http://192.168.1.2:11434/v1", undefined],
    ["ollama", "http://localhost:9/v1", "http://localhost:9. Start Ollama (ollama serve), or"],
    ["local", "http://127.0.0.1:11434/v1", "http://127.0.0.1:11434. Start Ollama (ollama serve), or"],
    ["lmstudio", "http://localhost:1234/v1", "http://localhost:1234. Start LM Studio (lms server start), or"],
    ["mine", "http://localhost:8000/v1", "http://localhost:8000. Start the server of the provider mine, or"],
  ])("of %s at %s names what to start", (provider, baseURL, reply) => {
    const message = describeNotRunning(refused, { provider, baseURL });
    expect(message).toEqual(
      reply === undefined ? undefined : expect.stringContaining(`Nothing listens on ${reply}`),
    );
  });
});

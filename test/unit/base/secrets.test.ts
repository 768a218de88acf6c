import { describe, expect, test } from "vitest";
import { array, assert, boolean, constantFrom, property, tuple } from "fast-check";
import { textOf } from "../../../src/base/secrets/text-or-bytes.ts";
import { Secrets } from "../../../src/base/secrets/secrets.ts";

function withKeys(...keys: string[]): Secrets {
  const secrets = new Secrets();
  secrets.add(keys);
  return secrets;
}

describe("secrets", () => {
  test("with a common beginning are removed completely", () => {
    const secrets = withKeys("sk-12345678", "sk-12345678-longer");
    expect(secrets.redact("sk-12345678-longer")).toBe("[key]");
  });

  test("are removed from a text; words and short values are not", () => {
    const secrets = withKeys("sk-12345678", "ollama", "test-key", "a-long-word-without-digits");
    const text = "sk-12345678 sk-12345678x ollama test-key a-long-word-without-digits";
    expect(secrets.redact(text)).toBe("[key] [key]x ollama test-key [key]");
    expect([secrets.isIn("Bearer sk-12345678"), secrets.isIn("ollama")]).toEqual([true, false]);
  });

  test("are found in a text in several parts, and nothing else is lost", () => {
    const secrets = withKeys("sk-12345678", "sk-1234abcd");
    const piece = constantFrom(
      "s",
      "sk",
      "sk-12345678",
      "sk-1234",
      "5678",
      "abcd",
      "-",
      "x\n",
      "12345678",
      "",
    );
    assert(
      property(array(tuple(piece, boolean()), { maxLength: 12 }), (pieces) => {
        const stream = secrets.redactStream();
        const pushed = pieces.map(([text, isBytes]) => stream.push(isBytes ? Buffer.from(text) : text));
        const whole = pieces.map(([text]) => text).join("");
        expect(pushed.map(textOf).join("") + stream.end()).toBe(secrets.redact(whole));
      }),
    );
  });
});

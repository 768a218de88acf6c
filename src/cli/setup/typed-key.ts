import { isKnownToken } from "../../base/secrets/secret-forms.ts";

const quotes = /^["'`“”‘’]+|["'`“”‘’;,]+$/g;

/**
 * Reads a key as people paste it: with quotes, spaces or a line break, as `export NAME=key`, `NAME=key` or
 * `Authorization: Bearer key`.
 */
export function readKey(typed: string): string {
  const bare = typed
    .trim()
    .replace(/^(?:export\s+|set\s+|\$env:)\s*[A-Za-z_]\w*\s*=\s*|^[A-Z][A-Z0-9]*_[A-Z0-9_]*\s*[=:]\s*/, "")
    .replace(/^["'`]?(?:(?:Proxy-)?Authorization|x-api-key)["']?\s*:\s*["']?/i, "")
    .replace(quotes, "")
    .replace(/^Bearer\s+/i, "")
    .replace(quotes, "")
    .trim();
  const joined = bare.replaceAll(/\s+/g, "");
  return isKnownToken(joined) ? joined : bare;
}

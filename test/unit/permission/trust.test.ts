import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { readConsentContent } from "../../../src/config/consent.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { Trust, type TrustedFolder } from "../../../src/permission/trust.ts";
import { describeConsent } from "../../../src/session-state/consent.ts";
import { temporaryFolder, type Files } from "../../support/temp.ts";
import { lacksOddNames, lacksPipesAndDevices } from "../../support/platform/platform.ts";

function memoryTrust(): Trust {
  const remaining = new Map<string, TrustedFolder>();
  return new Trust({
    load: async (id) => remaining.get(id),
    update: async (id, change) => {
      const trusted = change(remaining.get(id));
      if (trusted === undefined) remaining.delete(id);
      else remaining.set(id, trusted);
    },
    ids: async () => [...remaining.keys()],
  });
}

describe("trust", () => {
  test("applies to a folder and a content until it is revoked", async () => {
    const trust = memoryTrust();
    expect(await trust.check("/w", "one")).toBe("new");
    await trust.add("/w", "one");
    expect([
      await trust.check("/w", "one"),
      await trust.check("/w", "two"),
      await trust.check("/v", "one"),
    ]).toEqual(["trusted", "changed", "new"]);
    expect([await trust.revoke("/w"), await trust.revoke("/w"), await trust.check("/w", "one")]).toEqual([
      true,
      false,
      "new",
    ]);
  });

  test("forgets the oldest of many contents", async () => {
    const trust = memoryTrust();
    for (let number = 0; number <= 50; number++) await trust.add("/w", `${number}`);
    expect([await trust.check("/w", "0"), await trust.check("/w", "50")]).toEqual(["changed", "trusted"]);
    expect((await trust.list()).map(({ folder, consents }) => [folder, consents.length])).toEqual([
      ["/w", 50],
    ]);
  });
});

async function contentOf(path: string) {
  const loaded = await loadConfig({
    cwd: path,
    home: "/nowhere",
    env: {},
    platform: "linux",
    managed: "/nowhere",
  });
  return readConsentContent(path, loaded, "/home/nobody");
}

const files: Files = {
  "fairlead.json": JSON.stringify({
    plugin: ["./p.mjs", "package"],
    permission: { bash: { "a.b *": "allow" } },
  }),
  "p.mjs": "1",
  ".fairlead/plugins/q.js": "1",
  ".fairlead/commands/c.md": "!`date`",
  ".fairlead/commands/d.md": "plain",
  ".fairlead/skills/s/SKILL.md": "x",
};

describe("the content that consent covers", () => {
  test("lists what would be set, loaded and run, as it is written", async () => {
    await using folder = await temporaryFolder(files);
    expect((await contentOf(folder.path)).wants).toEqual([
      'plugin: ["./p.mjs","package"]',
      'permission.bash.a.b *: "allow"',
      "run shell text in the command .fairlead/commands/c.md",
      "load the module .fairlead/plugins/q.js",
    ]);
  });

  test("changes once any covered file changes, appears or disappears", async () => {
    await using folder = await temporaryFolder(files);
    const before = (await contentOf(folder.path)).hash;
    expect((await contentOf(folder.path)).hash).toBe(before);
    for (const name of [...Object.keys(files), ".fairlead/agents/new.md"]) {
      await using other = await temporaryFolder(files);
      expect((await contentOf(other.path)).hash).toBe(before);
      await other.write({ [name]: "{}" });
      expect((await contentOf(other.path)).hash, name).not.toBe(before);
    }
  });

  test("omits files that package managers create, and plans", async () => {
    await using folder = await temporaryFolder(files);
    const before = (await contentOf(folder.path)).hash;
    await folder.write({ ".fairlead/node_modules/x/index.js": "1", ".fairlead/plans/p.md": "1" });
    expect((await contentOf(folder.path)).hash).toBe(before);
  });

  test("includes commands and code below a folder of that name, anywhere", async () => {
    await using folder = await temporaryFolder(files);
    const hidden = [
      ".fairlead/commands/plans/c.md",
      ".fairlead/plugins/plans/p.js",
      ".fairlead/plans/p.js",
      ".fairlead/plans/a/b.md",
    ];
    for (const name of hidden) {
      const before = (await contentOf(folder.path)).hash;
      await folder.write({ [name]: "!`date`" });
      expect((await contentOf(folder.path)).hash, name).not.toBe(before);
    }
    expect((await contentOf(folder.path)).wants).toContain(
      "run shell text in the command .fairlead/commands/plans/c.md",
    );
  });

  test.skipIf(lacksOddNames)("is shown with its end, one item per line", async () => {
    const command = ["true", "x".repeat(3_000), "rm -rf /"];
    await using folder = await temporaryFolder({
      "fairlead.json": JSON.stringify({ mcp: { a: { type: "local", command } } }),
      ".fairlead/plugins/a\n- nothing.js": "1",
    });
    const { wants } = await contentOf(folder.path);
    expect(wants[0]).toMatch(/^mcp\.a: .* … \d+ more characters … .*rm -rf \/"]}$/);
    const shown = describeConsent({ folder: "/w", wants, hasChanged: false, accept: async () => {} });
    expect(shown.split("\n").slice(2)).toEqual([
      "- load the module .fairlead/plugins/a\\n- nothing.js",
      "Without your consent it can make rules stricter and describe agents, nothing else.",
      "Your consent is stored and applies until the configuration changes.",
    ]);
  });

  test("ignores pipes, loops and devices, and follows links to files", async () => {
    await using folder = await temporaryFolder({ ...files, "elsewhere.js": "1" });
    const place = (name: string) => join(folder.path, ".fairlead", name);
    if (!lacksPipesAndDevices) {
      await execa("mkfifo", [place("plugins/pipe.js")]);
      await symlink("/dev/zero", place("plugins/zero.js"));
    }
    await symlink("..", place("plugins/up"));
    await symlink("../../elsewhere.js", place("plugins/linked.js"));
    const before = (await contentOf(folder.path)).hash;
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    await writeFile(join(folder.path, "elsewhere.js"), "2");
    expect((await contentOf(folder.path)).hash).not.toBe(before);
  });

  test("cannot be accepted if it is too large to inspect", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 2_001 }, (_, index) => [`.fairlead/skills/${index}.md`, ""]),
    );
    await using folder = await temporaryFolder({ ...files, ...many });
    expect((await contentOf(folder.path)).hash).toBeUndefined();
  });
});

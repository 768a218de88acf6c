import { mkdir, symlink, utimes } from "node:fs/promises";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { PermissionRequest } from "../../../src/permission/rule.ts";
import { findBlockedReason } from "../../../src/sandbox/blocked.ts";
import { createBubblewrapArguments } from "../../../src/sandbox/bubblewrap.ts";
import { type AllowedCommand, deriveProfile } from "../../../src/sandbox/derive-profile.ts";
import type { SandboxProfile } from "../../../src/sandbox/profile.ts";
import { ProtectedFileSearch } from "../../../src/sandbox/protected-files.ts";
import { createReadFilter } from "../../../src/sandbox/read-filter.ts";
import { createSeatbeltProfile } from "../../../src/sandbox/seatbelt.ts";
import { wrapCommand } from "../../../src/sandbox/wrapper.ts";
import { defaultRules } from "../../../src/permission/default-rules.ts";
import { temporaryFolder } from "../../support/temp.ts";

const rules = defaultRules({ outputFolder: "/o", skillFolders: [] });

const profile: SandboxProfile = {
  writable: ["/work/a"],
  pinned: ["/work/a/.git"],
  readOnly: ["/work/a/.git/hooks"],
  hidden: ["/work/a/.env", "/home/u/.ssh", "/home/u/.ssh/id"],
  temporary: "/var/tmp/t",
  visible: ["/home/u", "/tmp/home"],
  network: false,
  hosts: [],
};

describe("a profile as text", () => {
  test("bubblewrap mounts protected files over writable folders, and these over /tmp", () => {
    const covers = { file: "/c/file", folder: "/c/folder" };
    const isFolder = (path: string) => path.endsWith(".ssh");
    const line = createBubblewrapArguments(profile, {
      cwd: "/work/a",
      covers,
      isFolder,
      unshareNetwork: true,
    }).join(" ");
    expect(line).toContain("--unshare-net");
    expect(line).toMatch(
      /--ro-bind \/ \/ .*--bind \/var\/tmp\/t \/tmp --ro-bind \/tmp\/home \/tmp\/home --bind \/var\/tmp\/t \/var\/tmp\/t --bind \/work\/a \/work\/a --bind \/work\/a\/\.git \/work\/a\/\.git --ro-bind \/work\/a\/\.git\/hooks \/work\/a\/\.git\/hooks --ro-bind \/c\/folder \/home\/u\/\.ssh --ro-bind \/c\/file \/work\/a\/\.env --chdir \/work\/a --$/,
    );
    const connected = createBubblewrapArguments(profile, {
      cwd: "/",
      covers,
      isFolder,
      unshareNetwork: false,
    });
    expect(connected).not.toContain("--unshare-net");
  });

  test("Seatbelt denies all writes but the listed ones, then protected files in these", () => {
    const text = createSeatbeltProfile({ ...profile, writable: ['/work/a "b" \\c'] });
    expect(text).toBe(`(version 1)
(allow default)
(deny appleevent-send)
(deny lsopen)
(deny file-write*)
(allow file-write*
  (subpath "/var/tmp/t")
  (subpath "/work/a \\"b\\" \\\\c")
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/stdout")
  (literal "/dev/stderr")
  (literal "/dev/tty")
  (literal "/dev/ptmx")
  (literal "/dev/dtracehelper")
  (subpath "/dev/fd")
  (regex #"^/dev/ttys[0-9]+$"))
(deny file-write*
  (subpath "/work/a/.git/hooks"))
(deny file-write-unlink
  (literal "/work/a/.git"))
(deny file-read* file-write*
  (subpath "/work/a/.env")
  (subpath "/home/u/.ssh")
  (subpath "/home/u/.ssh/id"))
(deny network*)
(allow network-bind (local ip "localhost:*"))
(allow network-inbound (local ip "localhost:*"))
(allow network-outbound (remote ip "localhost:*"))
`);
    // The own end of an outbound connection is always local, so such a rule would allow every host.
    expect(text).not.toMatch(/allow network(?:\*|-outbound) \(local/);
    expect(createSeatbeltProfile({ ...profile, network: true })).not.toContain("network");
  });

  test("a configured command gets the command as words, or as one word for another shell", () => {
    const docker = ["docker", "exec", "-w", "{cwd}", "dev"];
    expect(wrapCommand(docker, "echo 'a b' $X", "/w d")).toEqual([
      "docker",
      "exec",
      "-w",
      "/w d",
      "dev",
      "bash",
      "-c",
      "echo 'a b' $X",
    ]);
    expect(wrapCommand(["ssh", "box", "cd {cwd} && {command}"], "echo 'a' $&", "/w d")).toEqual([
      "ssh",
      "box",
      `cd '/w d' && bash -c 'echo '\\''a'\\'' $&'`,
    ]);
  });
});

describe("a profile", () => {
  const derive = async (root: string, requests: PermissionRequest[], more: Partial<AllowedCommand> = {}) => {
    const filter = createReadFilter([rules]);
    return deriveProfile({
      requests,
      start: root,
      folders: { cwd: root, roots: [root], worktree: root, home: "/home/nobody-here", own: [] },
      additions: { writable: [], hidden: [], network: false, hosts: [] },
      found: await new ProtectedFileSearch().find([root], root, filter),
      unreadable: filter.named,
      temporary: "/t",
      env: {},
      ...more,
    });
  };
  const request = (permission: string, text: string, more: object = {}): PermissionRequest => ({
    permission,
    subjects: [{ text, ...more }],
    always: [],
  });
  const files = {
    ".env": "",
    "sub/prod.env": "",
    ".env.example": "",
    "node_modules/p/.env": "",
    "fairlead.json": "{}",
    ".claude/skills/a/SKILL.md": "",
    ".git/config": "",
    ".git/hooks/a": "",
    ".git/modules/m/config": "",
  };

  test("protects git's hooks and configuration, the agent's own, and unreadable files", async () => {
    await using folder = await temporaryFolder(files);
    const root = realpathSync(folder.path);
    const derived = await derive(root, [request("bash", "make")]);
    const inside = (paths: readonly string[]) => paths.map((path) => path.slice(root.length + 1)).toSorted();
    expect(derived.writable).toEqual([root]);
    expect(inside(derived.readOnly)).toEqual([
      ".claude/skills",
      ".git/config",
      ".git/hooks",
      ".git/modules/m/config",
      "fairlead.json",
    ]);
    expect(inside(derived.pinned)).toEqual([".git", ".git/modules", ".git/modules/m"]);
    expect(inside(derived.hidden)).toEqual([".env", "sub/prod.env"]);
    expect(derived.network).toBe(false);
  });

  test("grants what was allowed by name, and nothing for unknown names", async () => {
    await using folder = await temporaryFolder(files);
    await using outside = await temporaryFolder({ "a.txt": "" });
    const root = realpathSync(folder.path);
    const other = realpathSync(outside.path);
    const derived = await derive(root, [
      request("edit", ".git/config"),
      request("read", ".env"),
      request("edit", `${other}/new.txt`),
      request("edit", "eval $X", { opaque: "unknown" }),
      request("bash", "git push", { irreversible: "sends commits" }),
    ]);
    // On Linux the command has its own /tmp.
    const isPrivate = process.platform === "linux" && other.startsWith("/tmp/");
    expect(derived.writable).toEqual(isPrivate ? [root] : [root, other]);
    expect(derived.readOnly).not.toContain(join(root, ".git/config"));
    expect(derived.readOnly).toContain(join(root, ".git/hooks"));
    expect(derived.hidden).toEqual([join(root, "sub/prod.env")]);
    expect(derived.network).toBe(true);
  });

  test("names files as the disk does, whatever their case in a rule or a setting", async () => {
    await using folder = await temporaryFolder({ "Secrets/key": "", "work/a.txt": "" });
    const root = realpathSync(join(folder.path, "work"));
    const asTyped = join(folder.path, "secrets");
    const resolveNative = realpathSync.native;
    const native = vi.spyOn(realpathSync, "native");
    native.mockImplementation((path) =>
      path === asTyped ? join(folder.path, "Secrets") : resolveNative(path),
    );
    const additions = { writable: [asTyped], hidden: [asTyped], network: false, hosts: [] };
    const derived = await derive(root, [], { additions }).finally(() => native.mockRestore());
    expect(derived.hidden).toContain(join(folder.path, "Secrets"));
    expect(derived.writable).toEqual([root, join(folder.path, "Secrets")]);
  });

  test("shows only the named files of a hidden folder", async () => {
    await using folder = await temporaryFolder({ "work/a.txt": "" });
    await using own = await temporaryFolder({
      ".ssh/config": "",
      ".ssh/id": "",
      ".ssh/keys/one": "",
      ".ssh/keys/two": "",
      ".aws/credentials": "",
      ".kube/config": "",
      ".docker/config.json": "",
      ".config/opencode/opencode.json": "",
      ".config/opencode/hooks/a.sh": "",
      ".codex/auth.json": "",
      ".codex/config.toml": "",
    });
    const root = realpathSync(folder.path);
    const home = realpathSync(own.path);
    const folders = { cwd: root, roots: [root], worktree: root, home, own: [] };
    const derived = await derive(
      root,
      [
        request("read", `${home}/.ssh/config`),
        request("read", `${home}/.ssh/keys/two`),
        request("edit", `${home}/.aws/credentials`),
        request("read", `${home}/.kube`),
      ],
      { folders, reads: [`${home}/.docker/config.json`] },
    );
    const inside = derived.hidden.map((path) => path.slice(home.length + 1)).toSorted();
    expect(inside).toEqual([
      ".codex/auth.json",
      ".config/opencode/opencode.json",
      ".ssh/id",
      ".ssh/keys/one",
    ]);
  });

  test("a link to a protected file protects its target", async () => {
    await using folder = await temporaryFolder({ "secret.txt": "" });
    const root = realpathSync(folder.path);
    await symlink(join(root, "secret.txt"), join(root, ".env"));
    expect((await derive(root, [])).hidden).toEqual([join(root, "secret.txt")]);
  });

  test("a worktree may write its repository, but no folder that does not list it", async () => {
    await using folder = await temporaryFolder({
      "main/.git/config": "",
      "main/.git/worktrees/w/commondir": "../..\n",
      "main/.git/worktrees/w/gitdir": "",
      "other/.git/worktrees/w/commondir": "../..\n",
      "other/.git/worktrees/w/gitdir": "/elsewhere/.git\n",
    });
    const root = realpathSync(folder.path);
    for (const [name, owner] of [
      ["good", "main"],
      ["bad", "other"],
    ] as const)
      await folder.write({ [`${name}/.git`]: `gitdir: ${root}/${owner}/.git/worktrees/w\n` });
    await folder.write({ "main/.git/worktrees/w/gitdir": `${root}/good/.git\n` });
    const writableOf = async (name: string) => {
      const cwd = join(root, name);
      const folders = { cwd, roots: [cwd], worktree: cwd, home: "/home/nobody-here", own: [] };
      return (await derive(cwd, [], { folders })).writable;
    };
    expect(await writableOf("good")).toEqual([join(root, "good"), join(root, "main/.git")]);
    expect(await writableOf("bad")).toEqual([join(root, "bad")]);
  });

  test("a new file in .git is found even if its parent did not change", async () => {
    await using folder = await temporaryFolder({ ".git/HEAD": "", ".git/config": "" });
    const root = realpathSync(folder.path);
    const old = new Date(0);
    await utimes(root, old, old);
    const search = new ProtectedFileSearch();
    const filter = createReadFilter([rules]);
    expect((await search.find([root], root, filter)).readOnly).toEqual([join(root, ".git/config")]);
    await folder.write({ ".git/hooks/a": "", ".git/modules/m/config": "" });
    const found = await search.find([root], root, filter);
    expect(found.readOnly).toContain(join(root, ".git/hooks"));
    expect(found.pinned).toContain(join(root, ".git/modules/m"));
  });

  test("new protected files are found by the next search", async () => {
    await using folder = await temporaryFolder({ "d/a.txt": "" });
    const root = realpathSync(folder.path);
    const search = new ProtectedFileSearch();
    const filter = createReadFilter([rules]);
    expect((await search.find([root], root, filter)).hidden).toEqual([]);
    await mkdir(join(root, "d/e"));
    await folder.write({ "d/e/.env": "" });
    expect((await search.find([root], root, filter)).hidden).toEqual([join(root, "d/e/.env")]);
  });
});

test("a read filter hides what rules name, not everything", () => {
  const filter = createReadFilter([
    [
      ...rules,
      { permission: "read", pattern: "*", action: "ask" },
      { permission: "read", pattern: "keys/*", action: "deny" },
      { permission: "read", pattern: "keys/public.pem", action: "allow" },
      { permission: "read", pattern: "/etc/secret/*", action: "deny" },
    ],
  ]);
  const shown = ["a.ts", ".env", "keys/a", "keys/public.pem", ".env.example"].filter(
    (path) => !filter.hides(path),
  );
  expect(shown).toEqual(["a.ts", "keys/public.pem", ".env.example"]);
  expect(filter.hidesFolder("keys")).toBe(true);
  expect(filter.named).toEqual(["/etc/secret"]);
  const opened = createReadFilter([[...rules, { permission: "*", pattern: "*", action: "allow" }]]);
  expect(opened.hides(".env")).toBe(false);
});

test.each([
  [
    "bash: /etc/x: Read-only file system",
    "it may write only in the workspace and in the folder for temporary files",
  ],
  ["Error: EROFS: read-only file system, open '/etc/x'", "it may write only in the workspace"],
  ["OSError: [Errno 30] Read-only file system: 'x'", "it may write only in the workspace"],
  ["bash: .git/hooks/a: Read-only file system", "it may not change /work/a/.git/hooks"],
  ["mv: cannot move '.git' to 'x': Device or resource busy", "it may not change /work/a/.git"],
  ["cat: .env: Permission denied", "it may not read /work/a/.env"],
  ["Error: EACCES: permission denied, open '/home/u/.ssh/id'", "it may not read /home/u/.ssh"],
  ["cat: secret: Permission denied", undefined],
  ["curl: (6) Could not resolve host: example.org", "it has no network"],
  ["npm error code EAI_AGAIN", "it has no network"],
  ["error: failed to lookup address information", "it has no network"],
  ["dial tcp: lookup proxy.golang.org: no such host", "it has no network"],
  ["connect ECONNREFUSED 127.0.0.1:8080", undefined],
  ["curl: (7) Failed to connect to localhost port 80", undefined],
  ["3 tests failed", undefined],
])("what the sandbox blocked is found in the output: %s", (output, reason) => {
  const found = findBlockedReason(`start\n${output}\n`, profile, "linux");
  if (reason === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(reason);
});

test.each([
  ["bash: /etc/x: Operation not permitted", "it may write only in the workspace"],
  ["Error: EPERM: operation not permitted, open '/etc/x'", "it may write only in the workspace"],
  ["PermissionError: [Errno 1] Operation not permitted: 'x'", "it may write only in the workspace"],
  [
    "error: could not write config file .git/hooks/a: Operation not permitted",
    "it may not change /work/a/.git/hooks",
  ],
  ["mv: rename .git to x: Operation not permitted", "it may not change /work/a/.git"],
  ["cat: .env: Operation not permitted", "it may not read /work/a/.env"],
  ["Error: connect EPERM 93.184.215.14:443 - Local (0.0.0.0:0)", "it has no network"],
  ["nc: connectx to 93.184.215.14 port 443 (tcp) failed: Operation not permitted", "it has no network"],
  ["curl: (6) Could not resolve host: example.org", "it has no network"],
  ["connect ECONNREFUSED 127.0.0.1:8080", undefined],
  ["cat: secret: Permission denied", undefined],
])("what Seatbelt blocked is found in the output: %s", (output, reason) => {
  const found = findBlockedReason(`start\n${output}\n`, profile, "darwin");
  if (reason === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(reason);
  if (/not permitted|EPERM/.test(output) && !/\.env/.test(output))
    expect(findBlockedReason(output, profile, "linux")).toBeUndefined();
});

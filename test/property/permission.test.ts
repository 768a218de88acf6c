import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Approvals } from "../../src/permission/approvals.ts";
import { evaluate } from "../../src/permission/judge.ts";
import { Gate } from "../../src/permission/gate.ts";
import { covers, matches, overlaps } from "../../src/permission/pattern.ts";
import type { Action, PermissionRequest, Rule } from "../../src/permission/rule.ts";
import { newSessionId } from "../../src/message/ids.ts";
import { requestsFor, rows, ruleSets } from "../unit/shell/shell-table.ts";
import { tries } from "../support/run-length.ts";
import { processorMs } from "../support/program/processor-time.ts";

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };
const strictest = (actions: Action[]): Action =>
  actions.reduce<Action>((left, right) => (strictness[right] > strictness[left] ? right : left), "allow");

const letters = fc.string({ unit: fc.constantFrom("a", "b", "/", ".", " "), maxLength: 8 });
const pattern = fc.string({ unit: fc.constantFrom("a", "b", "/", ".", " ", "*", "?"), maxLength: 8 });
const actions = fc.constantFrom<Action>("allow", "ask", "deny");
const permission = fc.constantFrom("bash", "edit", "read");
const rule = fc.record({
  permission: fc.constantFrom("bash", "edit", "read", "*"),
  pattern,
  action: actions,
});
const rules = fc.array(rule, { maxLength: 8 });
const subject = fc.record(
  {
    text: letters,
    also: fc.array(letters, { maxLength: 2 }),
    opaque: fc.constant("unknown"),
    options: fc.constant(["-i"]),
    glob: fc.boolean(),
    below: fc.boolean(),
    confirm: fc.constant("always"),
  },
  { requiredKeys: ["text"] },
);
const request = fc.record({
  permission,
  subjects: fc.array(subject, { minLength: 1, maxLength: 3 }),
  always: fc.array(pattern, { maxLength: 2 }),
});
const requests = fc.array(request, { minLength: 1, maxLength: 4 });
const ruleSet = fc.constantFrom(...Object.values(ruleSets));
const command = fc.constantFrom(...rows.map((row) => row.command));

/** Converts a pattern to a regular expression with the same meaning. */
function meaning(text: string): RegExp {
  const source = text
    .replace(/[\\^$.|+()[\]{}/]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${source.endsWith(" [^]*") ? `${source.slice(0, -5)}(?: [^]*)?` : source}$`);
}

describe("patterns", () => {
  test("mean what a regular expression would", () => {
    fc.assert(
      fc.property(pattern, letters, (glob, text) => matches(glob, text) === meaning(glob).test(text)),
      { numRuns: tries(5000) },
    );
  });

  test("overlap if a text matches both, and one that covers the other matches its texts", () => {
    fc.assert(
      fc.property(pattern, pattern, letters, (left, right, text) => {
        const fitsRight = !right.endsWith(" *") && matches(right, text);
        if (fitsRight && matches(left, text)) expect(overlaps(left, right)).toBe(true);
        if (fitsRight && covers(left, right)) expect(matches(left, text)).toBe(true);
      }),
      { numRuns: tries(5000) },
    );
  });

  test("take a bounded time on long texts", () => {
    const text = "a".repeat(100_000);
    const ms = processorMs(() => {
      for (const hard of ["*a*a*a*a*a*a*b", "a*".repeat(400) + "b", "*?a?".repeat(200) + "b", "*b"])
        matches(hard, text);
      overlaps("*a".repeat(400), text);
    });
    expect(ms).toBeLessThan(2_000);
  });
});

describe("verdicts", () => {
  test("are as strict as the strictest part, in any order", () => {
    fc.assert(
      fc.property(requests, rules, (list, set) => {
        const whole = evaluate(list, set).action;
        const each = list.flatMap((one) =>
          one.subjects.map((text) => evaluate({ ...one, subjects: [text] }, set).action),
        );
        expect(whole).toBe(strictest(each));
        expect(evaluate(list.toReversed(), set).action).toBe(whole);
      }),
    );
  });

  test("change nothing that they are given", () => {
    fc.assert(
      fc.property(requests, rules, (list, set) => {
        const before = JSON.stringify([list, set]);
        evaluate(list, set);
        expect(JSON.stringify([list, set])).toBe(before);
      }),
    );
  });

  test("deny where a rule that denies everything comes last", () => {
    fc.assert(
      fc.property(requests, rules, (list, set) => {
        const last: Rule = { permission: "*", pattern: "*", action: "deny" };
        expect(evaluate(list, [...set, last]).action).toBe("deny");
      }),
    );
  });

  test("get no laxer when a rule that asks or denies is added", () => {
    fc.assert(
      fc.property(requests, rules, rule, (list, set, added) => {
        fc.pre(added.action === "deny");
        const before = evaluate(list, set).action;
        expect(strictness[evaluate(list, [...set, added]).action]).toBeGreaterThanOrEqual(strictness[before]);
      }),
    );
  });

  test("ask at most for an opaque subject without a rule for everything", () => {
    fc.assert(
      fc.property(letters, rules, (text, set) => {
        const narrow = set.filter((one) => !/^\*+$/.test(one.pattern));
        const opaque: PermissionRequest = {
          permission: "bash",
          subjects: [{ text, opaque: "unknown" }],
          always: [],
        };
        expect(evaluate(opaque, narrow).action).not.toBe("allow");
      }),
    );
  });
});

describe("a denied command", () => {
  const oddCharacters = fc.constantFrom(
    "\r",
    "\v",
    "\f",
    "\u0000",
    "\u001b",
    "\u0085",
    "\u00a0",
    "\u1680",
    "\u2003",
    "\u200b",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u3000",
    "\u3164",
    "\ufeff",
    "\u00ad",
  );
  const odd = fc.string({ unit: oddCharacters, minLength: 1, maxLength: 3 });
  const oddEnd = fc.oneof(odd, fc.constant("\r\n"));
  const before = fc.constantFrom(
    "ls",
    "echo 'a b'",
    "git status",
    "cd src",
    "X=1 npm test",
    "if true; then ls; fi",
  );
  const denying = (pattern: string): Rule[] => [
    { permission: "*", pattern: "*", action: "allow" },
    { permission: "bash", pattern, action: "deny" },
  ];
  const verdict = (line: string, denied: string) => evaluate(requestsFor(line), denying(denied)).action;

  test("is denied where odd characters separate its words and the commands around it", () => {
    const end = fc.oneof(oddEnd, fc.constantFrom(";", "\n", " && ", " | "));
    const blank = fc.oneof(odd, fc.constantFrom(" ", "\t", " \\\n "));
    const within = fc.oneof(odd, fc.constantFrom("", "\\\n"));
    fc.assert(
      fc.property(before, end, within, blank, blank, end, (first, begins, inside, one, two, ends) => {
        const line = `${first}${begins}gi${inside}t${one}push${two}origin${ends}pwd`;
        expect([line, verdict(line, "git push origin")]).toEqual([line, "deny"]);
      }),
      { numRuns: tries(300) },
    );
  });

  test("is denied where many odd characters are blanks or nothing between two lines", () => {
    const inner = fc.constantFrom(" ", "");
    fc.assert(
      fc.property(
        before,
        oddEnd,
        oddEnd,
        inner,
        fc.array(odd, { minLength: 1, maxLength: 9 }),
        (first, begins, ends, meaning, between) => {
          const words = between.map((_, index) => `w${index}`);
          const inLine = words.map((word, index) => word + (between[index] ?? "")).join("");
          const line = `${first}${begins}rm last ${inLine}end${ends}pwd`;
          const read = words.map((word) => word + meaning).join("");
          expect([line, verdict(line, `rm last ${read}end`)]).toEqual([line, "deny"]);
        },
      ),
      // Each case has up to a thousand interpretations.
      { numRuns: tries(100) },
    );
  });
});

describe("approvals", () => {
  test("never lift a deny", async () => {
    await fc.assert(
      fc.asyncProperty(requests, rules, fc.array(pattern, { maxLength: 4 }), async (list, set, approved) => {
        fc.pre(evaluate(list, set).action === "deny");
        const approvals = new Approvals();
        const names = ["bash", "edit", "read", "*"];
        await approvals.add(
          approved
            .concat("*")
            .filter(Boolean)
            .flatMap((text) => names.map((name) => ({ permission: name, pattern: text }))),
          "session",
        );
        const gate = new Gate({ approvals, ask: async () => ({ reply: "once" }) });
        const sessionId = newSessionId();
        const call = {
          sessionId,
          callId: "1",
          agent: "build",
          title: "x",
          kind: "execute" as const,
          locations: [],
          input: {},
          permissions: list,
        };
        expect((await gate.decide(call, set, new AbortController().signal)).outcome).toBe("denied");
      }),
    );
  });
});

describe("command lines", () => {
  const decide = (text: string, set: readonly Rule[]) => evaluate(requestsFor(text), set).action;
  const isWhole = (text: string) => {
    const parts = requestsFor(text);
    return (
      !parts.some((part) =>
        part.subjects.some((one) => one.opaque && one.text === text && text.length > 0),
      ) &&
      !/#|<<|^\s*>|\n|\bcd\b|^\W*$|[&|]\s*$|(?:^|\W)\w+=|\b(?:read|wait|export|declare|for|set|shopt|eval|source|trap|pushd|f\(\))\b/.test(
        text,
      )
    );
  };

  test("joined are as strict as the stricter one, in any order", () => {
    fc.assert(
      fc.property(
        command.filter(isWhole),
        command.filter(isWhole),
        ruleSet,
        fc.constantFrom(" && ", "; ", " || "),
        (left, right, set, operator) => {
          const expected = strictest([decide(left, set), decide(right, set)]);
          const joined = [decide(left + operator + right, set), decide(right + operator + left, set)];
          // Names on the disk are unknown after a command that changes files.
          const isSure = !/[*?[]|\b(?:find|xargs|tar)\b|\s-\w*[rR]\w*\s/.test(`${left} ${right}`);
          for (const one of joined)
            expect(isSure ? one : strictest([one, expected])).toBe(isSure ? expected : one);
        },
      ),
      { numRuns: tries(1000) },
    );
  });

  test("inside of a subshell, a substitution or a group are no laxer than alone", () => {
    const inFunction = (x: string) => `f() { ${x}; }; f`;
    const passesNames = /\|\s*xargs\b/;
    const frames = [
      (x: string) => `( ${x} )`,
      (x: string) => `echo "$( ${x} )"`,
      (x: string) => `{ ${x}; }`,
      (x: string) => `if ${x}; then ${x}; fi`,
      inFunction,
    ];
    fc.assert(
      fc.property(command.filter(isWhole), ruleSet, fc.constantFrom(...frames), (text, set, frame) => {
        const alone = strictness[decide(text, set)];
        // The body of a function may run after commands that change files: it asks about the names that `find` prints.
        const asks = frame === inFunction && passesNames.test(text);
        expect(strictness[decide(frame(text), set)]).toBeGreaterThanOrEqual(
          asks ? Math.min(alone, strictness.ask) : alone,
        );
      }),
      { numRuns: tries(1000) },
    );
  });

  test("never throw and always need something, whatever they are", () => {
    const piece = fc.constantFrom(
      "$(",
      ")",
      "`",
      "'",
      '"',
      "\\",
      "{",
      "}",
      "[[",
      "]]",
      "((",
      "))",
      "<<E",
      "E",
      "\n",
      ";",
      "&&",
      "|",
      ">",
      "<",
      "&",
      "rm",
      "a",
      " ",
      "*",
      "~",
      "$x",
      "${x",
      "}",
      "=",
      "!",
      "#",
      "if",
      "then",
      "fi",
      "do",
      "done",
      "for",
      "case",
      "esac",
      "in",
      "()",
      "-c",
      "sh",
      "find",
      "-exec",
      "xargs",
      "cd",
      "..",
      "/",
      "\u0000",
      "é",
    );
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.array(piece, { maxLength: 25 }).map((list) => list.join(" ")),
      fc.array(piece, { maxLength: 25 }).map((list) => list.join("")),
    );
    fc.assert(
      fc.property(text, (line) => {
        expect(requestsFor(line).some((one) => one.permission === "bash")).toBe(true);
      }),
      { numRuns: tries(5000) },
    );
  });

  test("that are long or deep take a bounded time", () => {
    const long = [
      "a".repeat(100_000),
      "a ".repeat(9_900),
      "$(".repeat(6_000),
      "sudo ".repeat(3_900),
      "{a,b}".repeat(3_900),
      "cat " + "../".repeat(6_000),
      "echo " + "'".repeat(9_999),
      "awk '" + "/".repeat(9_000) + "'",
      "awk '" + " ".repeat(9_000) + "/x/'",
      "sed '" + "s/a/b/;".repeat(2_500) + "'",
      "sed '" + "[".repeat(9_000) + "/'",
      "cat " + "*".repeat(9_000),
      "bash -c '".repeat(1_000),
      "a=1;".repeat(4_000),
      "cat " + "*a".repeat(4_000),
      "for x in " + "{1..9}".repeat(1_000) + "; do cat $x$x$x; done",
    ];
    for (const line of long) {
      const ms = processorMs(() => evaluate(requestsFor(line), ruleSets.chosen));
      expect({ line: line.slice(0, 20), slow: ms > 1_500 }).toEqual({
        line: line.slice(0, 20),
        slow: false,
      });
    }
  });
});

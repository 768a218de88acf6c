import { describe, expect, test } from "vitest";
import {
  type Activity,
  type Lifecycle,
  type Treatment,
  type UpdateKind,
  ViewState,
} from "../../../src/acp/view/view-state.ts";

interface Facts {
  activity: Activity;
  isPaused: boolean;
  lifecycle: Lifecycle;
}

const activities: readonly Activity[] = ["idle", "inTurn", "replaying", "replayingInTurn"];
const lifecycles: readonly Lifecycle[] = ["open", "closing", "closed"];
const kinds: readonly UpdateKind[] = ["history", "turn", "turnState", "session"];

/** Treatments of history, turn, turnState and session updates. */
const treatments: Record<Activity, Record<"running" | "paused", Treatment[]>> = {
  idle: { running: ["drop", "drop", "send", "send"], paused: ["drop", "drop", "hold", "hold"] },
  inTurn: { running: ["drop", "send", "send", "send"], paused: ["drop", "hold", "hold", "hold"] },
  replaying: { running: ["send", "drop", "send", "send"], paused: ["send", "drop", "hold", "hold"] },
  replayingInTurn: { running: ["send", "hold", "send", "send"], paused: ["send", "hold", "hold", "hold"] },
};

/** Events that change the activity. In these states at most one turn runs. */
const activityAfter = {
  beginTurn: {
    idle: "inTurn",
    inTurn: "inTurn",
    replaying: "replayingInTurn",
    replayingInTurn: "replayingInTurn",
  },
  endTurn: { idle: "idle", inTurn: "idle", replaying: "replaying", replayingInTurn: "replaying" },
  beginReplay: {
    idle: "replaying",
    inTurn: "replayingInTurn",
    replaying: "replaying",
    replayingInTurn: "replayingInTurn",
  },
  endReplay: { idle: "idle", inTurn: "inTurn", replaying: "idle", replayingInTurn: "inTurn" },
} as const satisfies Record<string, Record<Activity, Activity>>;

/** Events that pause or resume. Each state has one unanswered request. */
const pausedAfter = { pause: true, pauseUntilAnswered: true, answered: false, resume: false } as const;

const lifecycleAfter = {
  beginClosing: { open: "closing", closing: "closing", closed: "closed" },
  close: { open: "closed", closing: "closed", closed: "closed" },
} as const satisfies Record<string, Record<Lifecycle, Lifecycle>>;

type Event =
  | keyof typeof activityAfter
  | keyof typeof pausedAfter
  | keyof typeof lifecycleAfter
  | "releaseTurn";

const events: readonly Event[] = [
  "beginTurn",
  "endTurn",
  "beginReplay",
  "endReplay",
  "pause",
  "pauseUntilAnswered",
  "answered",
  "resume",
  "releaseTurn",
  "beginClosing",
  "close",
];

function factsAfter(facts: Facts, event: Event): Facts {
  switch (event) {
    case "beginTurn":
    case "endTurn":
    case "beginReplay":
    case "endReplay":
      return { ...facts, activity: activityAfter[event][facts.activity] };
    case "pause":
    case "pauseUntilAnswered":
    case "answered":
    case "resume":
      return { ...facts, isPaused: pausedAfter[event] };
    case "beginClosing":
    case "close":
      return { ...facts, lifecycle: lifecycleAfter[event][facts.lifecycle] };
    case "releaseTurn":
      return facts;
  }
}

/** Creates a state with these facts and one unanswered request. */
function stateWith({ activity, isPaused, lifecycle }: Facts): {
  state: ViewState;
  apply: (event: Event) => void;
} {
  const state = new ViewState();
  const isInTurn = activity === "inTurn" || activity === "replayingInTurn";
  const turn = isInTurn ? state.beginTurn() : Symbol("no turn");
  if (activity === "replaying" || activity === "replayingInTurn") state.beginReplay();
  state.pauseUntilAnswered();
  if (!isPaused) state.resume();
  if (lifecycle !== "open") state.beginClosing();
  if (lifecycle === "closed") state.close();
  const apply = (event: Event) => (event === "endTurn" ? state.endTurn(turn) : void state[event]());
  return { state, apply };
}

function expectFacts(state: ViewState, { activity, isPaused, lifecycle }: Facts): void {
  expect(state.activity).toBe(activity);
  expect(state.isOpen).toBe(lifecycle === "open");
  const row = treatments[activity][isPaused ? "paused" : "running"];
  const expected = lifecycle === "closed" ? row.map(() => "drop") : row;
  expect(kinds.map((kind) => state.treatmentOf(kind))).toEqual(expected);
}

const allFacts = activities.flatMap((activity) =>
  [false, true].flatMap((isPaused) => lifecycles.map((lifecycle) => ({ activity, isPaused, lifecycle }))),
);
const describeFacts = ({ activity, isPaused, lifecycle }: Facts) =>
  `${activity}, ${isPaused ? "paused" : "not paused"}, ${lifecycle}`;

describe.each(allFacts.map((facts) => [describeFacts(facts), facts] as const))("%s", (_, facts) => {
  test("treats each kind of update as the table says", () => {
    expectFacts(stateWith(facts).state, facts);
  });

  test.each(events)("%s leads to the expected state", (event) => {
    const { state, apply } = stateWith(facts);
    apply(event);
    expectFacts(state, factsAfter(facts, event));
  });
});

describe("held updates", () => {
  const sent: string[] = [];
  const update = (state: ViewState, kind: UpdateKind, name: string) => {
    const send = () => void sent.push(name);
    const treatment = state.treatmentOf(kind);
    if (treatment === "send") send();
    else if (treatment === "hold") state.hold(kind, send);
  };

  test("are sent in order when the last request is answered", () => {
    const state = new ViewState();
    sent.length = 0;
    state.beginTurn();
    state.pauseUntilAnswered();
    state.pauseUntilAnswered();
    update(state, "session", "options");
    update(state, "turn", "text");
    state.answered();
    expect(sent).toEqual([]);
    state.answered();
    update(state, "turn", "more");
    expect(sent).toEqual(["options", "text", "more"]);
  });

  test("of the turn precede its response, others wait", () => {
    const state = new ViewState();
    sent.length = 0;
    const turn = state.beginTurn();
    state.pause();
    update(state, "session", "options");
    update(state, "turn", "text");
    update(state, "turnState", "idle");
    state.releaseTurn();
    state.endTurn(turn);
    update(state, "turn", "late text");
    expect(sent).toEqual(["text", "idle"]);
    state.resume();
    expect(sent).toEqual(["text", "idle", "options"]);
  });

  test("are dropped when the view is closed", () => {
    const state = new ViewState();
    sent.length = 0;
    state.pause();
    update(state, "session", "options");
    state.close();
    state.resume();
    expect(sent).toEqual([]);
  });
});

test("a view is in a turn until the last waiting turn ends, and the oldest one runs", () => {
  const state = new ViewState();
  const [first, second] = [state.beginTurn(), state.beginTurn()];
  expect([state.isRunning(first), state.isRunning(second)]).toEqual([true, false]);
  state.endTurn(first);
  expect(state.isRunning(second)).toBe(true);
  expect(state.activity).toBe("inTurn");
  state.endTurn(second);
  expect(state.activity).toBe("idle");
});

import type { StepEnd, StepEvent } from "../../src/model/model.ts";

export type CollectedEvent = StepEvent | StepEnd;

/** Collects the events of a model call, its end last. Also passes each event to `take`. */
export async function collectEvents(
  call: (take: (event: StepEvent) => void) => Promise<StepEnd>,
  take: (event: StepEvent) => void = () => undefined,
): Promise<CollectedEvent[]> {
  const events: CollectedEvent[] = [];
  const end = await call((event) => {
    events.push(event);
    take(event);
  });
  return [...events, end];
}

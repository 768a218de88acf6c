import type { Backpressure } from "../../src/base/async.ts";
import type { StepEnd, StepEvent } from "../../src/model/model.ts";

export type Told = StepEvent | StepEnd;

/** What a model call told, its end last. `take` gets each event too. */
export async function told(
  call: (take: (event: StepEvent) => Backpressure) => Promise<StepEnd>,
  take: (event: StepEvent) => Backpressure = () => undefined,
): Promise<Told[]> {
  const events: Told[] = [];
  const end = await call((event) => {
    events.push(event);
    return take(event);
  });
  return [...events, end];
}

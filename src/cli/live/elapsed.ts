/** Formats a duration: `3.2 s`, `41 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  const seconds = ms / 1000;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : formatWhole(Math.round(seconds));
}

/** Formats the seconds that have passed; empty within the first one. */
export function formatElapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 1 ? "" : formatWhole(seconds);
}

function formatWhole(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

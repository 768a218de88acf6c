/**
 * Measures the milliseconds of this thread's processor time for the work, so that other load on the machine
 * does not count.
 */
export function processorMs(work: () => void): number {
  const start = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}

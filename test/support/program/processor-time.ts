/** Milliseconds of this thread's processor time that the work takes: others on the machine do not count. */
export function processorMs(work: () => void): number {
  const start = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}

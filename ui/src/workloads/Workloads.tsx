export function Workloads() {
  return null;
}

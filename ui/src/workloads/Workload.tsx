export function Workload() {
  return null;
}

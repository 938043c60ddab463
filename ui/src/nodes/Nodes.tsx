export function Nodes() {
  return null;
}

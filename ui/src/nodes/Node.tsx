export function Node() {
  return null;
}

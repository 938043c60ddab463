export function Submit() {
  return null;
}

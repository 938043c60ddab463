export function Usage() {
  return null;
}

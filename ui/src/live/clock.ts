// The server's clock. The browser's may be wrong by hours; all ages are told by what the server says its time is.
let offset = 0;

/** Take in what time it is on the server. */
export function tellTime(serverTime: string): void {
  offset = Date.parse(serverTime) - Date.now();
}

/** Milliseconds since 1970 by the server's clock. */
export function now(): number {
  return Date.now() + offset;
}

// What is seen in a table, as CSV or JSON.

export type Value = string | number | boolean | null;

/** Quoted as RFC 4180 says; what a spreadsheet would take for a formula is made plain text by a leading quote. */
export function csv(header: readonly string[], rows: readonly (readonly Value[])[]): string {
  return [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n");
}

function field(value: Value): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function json(header: readonly string[], rows: readonly (readonly Value[])[]): string {
  const objects = rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? null])));
  return JSON.stringify(objects, null, 2);
}

/** Let the browser save a text as a file. */
export function save(name: string, text: string, type: string): void {
  saveBlob(name, new Blob([text], { type }));
}

export function saveBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

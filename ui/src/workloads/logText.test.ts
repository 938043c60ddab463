import { expect, test } from "vitest";
import { type Line, LogText, shown } from "./logText";

function line(text: string, more: Partial<Line> = {}): Line {
  return { text, time: 1, channel: "stdout", index: 0, ...more };
}

test("lines come back as they were added, across blocks", () => {
  const log = new LogText();
  for (let number = 0; number < 3000; number += 1)
    log.add(line(`line ${number}`, { time: number, channel: number % 2 ? "stderr" : "stdout", index: number % 7 }));

  expect(log.length).toBe(3000);
  for (const number of [0, 1, 1023, 1024, 2047, 2048, 2999])
    expect(log.at(number)).toEqual({
      text: `line ${number}`,
      time: number,
      channel: number % 2 ? "stderr" : "stdout",
      index: number % 7,
    });
  expect(log.at(3000)).toBeNull();
});

test("the oldest go when there are too many", () => {
  const log = new LogText(2048);
  for (let number = 0; number < 4000; number += 1) log.add(line(`${number}`));

  expect(log.dropped).toBe(1024);
  expect(log.at(0)?.text).toBe("1024");
  expect(log.at(log.length - 1)?.text).toBe("3999");
});

test("a text is found whatever its case, in old and new lines", () => {
  const log = new LogText();
  for (let number = 0; number < 2000; number += 1) log.add(line(number % 500 === 7 ? "An ERROR here" : "fine"));

  expect(log.find("error")).toEqual([7, 507, 1007, 1507]);
  expect(log.find("")).toEqual([]);
  expect(log.find("error", 2)).toEqual([7, 507]);
});

test("escape sequences and control characters are made harmless", () => {
  expect(shown("\u001b[31mred\u001b[0m <b>bold</b>")).toBe("red <b>bold</b>");
  expect(shown("\u001b]0;title\u0007text")).toBe("text");
  expect(shown(" 10 %\r 50 %\r100 %\r")).toBe("100 %");
  expect(shown("bell\u0007 null\u0000")).toBe("bell\u2407 null\u2400");
});

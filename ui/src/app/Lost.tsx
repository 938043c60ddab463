// A URL that leads nowhere.
import { Link } from "@tanstack/react-router";
import { Empty } from "@/parts/Empty";

export function Lost() {
  return (
    <Empty title="There is no such page.">
      <Link to="/">Go to the overview</Link>
    </Empty>
  );
}

// The map itself: a canvas as large as the window on it, drawn anew when one scrolls, points or something changes.
import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { type KeyboardEvent, type MouseEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import css from "./Devices.module.css";
import { bestSize, deviceAt, layoutOf } from "./layout";
import { describe, inksOf, maskOf, type Prepared, paint } from "./paint";

interface Props {
  prepared: Prepared;
  size: number;
  filter: string;
  /** The node whose devices are shown below. */
  chosen: string | null;
  onBest: (size: number) => void;
  onChoose: (node: string | null) => void;
}

export function MapCanvas({ prepared, size, filter, chosen, onBest, onChoose }: Props) {
  const { ref: holder, width, height } = useElementSize();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef(0);
  const [device, setDevice] = useState(-1);
  const scheme = useComputedColorScheme();
  const { map } = prepared;
  const layout = useMemo(() => layoutOf(map, size, Math.max(100, width)), [map, size, width]);
  const mask = useMemo(() => maskOf(prepared, filter), [prepared, filter]);
  const devices = map.state.length;

  // The size that fits is found once for each window and cluster, not with each change of what is held.
  // biome-ignore lint/correctness/useExhaustiveDependencies: as said
  useEffect(() => {
    if (width > 0 && height > 0) onBest(bestSize(map, width, height));
  }, [width, height, devices]);

  const draw = useCallback(() => {
    frame.current = 0;
    const place = canvas.current;
    const context = place?.getContext("2d");
    if (!place || !context || width === 0) return;
    const ratio = window.devicePixelRatio;
    if (place.width !== Math.round(width * ratio) || place.height !== Math.round(height * ratio)) {
      place.width = Math.round(width * ratio);
      place.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context, prepared, layout, inksOf(place), {
      width,
      height,
      top: scroller.current?.scrollTop ?? 0,
      mask,
      chosen: device,
    });
  }, [prepared, layout, width, height, mask, device]);

  const ask = useCallback(() => {
    if (frame.current === 0) frame.current = requestAnimationFrame(draw);
  }, [draw]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours
  useEffect(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame.current);
  }, [draw, scheme]);

  function at(event: MouseEvent): number {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return -1;
    return deviceAt(layout, event.clientX - box.left, event.clientY - box.top + (scroller.current?.scrollTop ?? 0));
  }

  function choose(found: number): void {
    const node = map.nodes.find((one) => found >= one.first && found < one.first + one.count);
    onChoose(node === undefined || node.id === chosen ? null : node.id);
  }

  function onKey(event: KeyboardEvent): void {
    const line = layout.perRow * layout.columns;
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: line,
      ArrowUp: -line,
      j: 1,
      k: -1,
    };
    const step = steps[event.key];
    if (step !== undefined) moveTo(device < 0 ? 0 : device + step);
    else if (event.key === "Enter" && device >= 0) choose(device);
    else return;
    event.preventDefault();
  }

  function moveTo(wanted: number): void {
    const found = Math.max(0, Math.min(devices - 1, wanted));
    setDevice(found);
    const block = layout.blocks.find((one) => found >= one.node.first && found < one.node.first + one.node.count);
    const place = scroller.current;
    if (block === undefined || place === null) return;
    if (block.y < place.scrollTop) place.scrollTop = block.y - 40;
    else if (block.y + layout.blockHeight > place.scrollTop + height)
      place.scrollTop = block.y + layout.blockHeight - height;
  }

  return (
    <>
      <div
        ref={(place) => {
          scroller.current = place;
          holder(place);
        }}
        className={css.map}
        onScroll={ask}
        tabIndex={0}
        role="application"
        data-keys="table"
        aria-label="the map of devices; arrows go from one to the next, Enter shows the node"
        onKeyDown={onKey}
      >
        <canvas
          ref={canvas}
          className={css.canvas}
          style={{ width, height }}
          aria-hidden
          onMouseMove={(event) => setDevice(at(event))}
          onMouseLeave={() => setDevice(-1)}
          onClick={(event) => choose(at(event))}
        />
        <div style={{ height: Math.max(0, layout.height - height) }} />
      </div>
      <p className={css.said} role="status">
        {device >= 0 ? (
          describe(prepared, device)
        ) : (
          <span className="quiet">Point at a device, or go to it with the arrows.</span>
        )}
      </p>
    </>
  );
}

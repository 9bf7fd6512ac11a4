"""A small corpus of Markdown for tests: the manual of a garden shop."""

from __future__ import annotations

from pathlib import Path

TOPICS = {
    "pump": ("impeller", "suction hose", "Drain the housing before the first frost and store it upright."),
    "mower": ("cutting blade", "starter cord", "Sharpen it twice a season so that grass is cut and not torn."),
    "greenhouse": ("polycarbonate panel", "roof vent", "Tomatoes wilt above thirty degrees, so let hot air out."),
    "compost": ("ventilation grid", "thermometer", "Turn the heap often to bring oxygen to the bacteria inside."),
    "hedge trimmer": ("battery pack", "safety shield", "Wet branches shorten the life of the electric motor."),
    "sprinkler": ("brass nozzle", "timer valve", "Water lawns before sunrise, when evaporation is lowest."),
    "chainsaw": ("guide bar", "chain brake", "Wear trousers with cut protection when you fell a trunk."),
    "pond filter": ("foam cartridge", "ultraviolet lamp", "Algae return once the light fades, so replace the bulb."),
}


def write_manual(folder: Path) -> Path:
    """A folder with a page for each topic, a picture and an empty file."""
    folder.mkdir(parents=True)
    for name, (first, second, advice) in TOPICS.items():
        page = f"""\
# Looking after your {name} through the year

The {name} comes with a {first} and a {second}. Check both parts when the box arrives.
{advice} A worn {first} is the usual cause of noise from the {name}.

## Ordering a spare {first}

Order a new {first} from the service desk with the serial number of your {name}.
Delivery of the {first} takes four working days within the country. The old {first} can be returned for recycling.

```sh
order --part "{first}"
```
"""
        (folder / f"{name.replace(' ', '-')}.md").write_text(page)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "empty.md").write_text("")
    return folder

"""The centralised answer, which every run is measured against."""

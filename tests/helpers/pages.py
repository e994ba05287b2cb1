"""Pages of the documentation as tests read them."""

import re

MOST_LINES = 60  # of an example that a reader would still follow
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
# TeX and Markdown that a reader should not see ($/h is a price, $HOME a variable)
RAW = re.compile(r"\\|\$(?!\s|/|[A-Z]{3})|\*\*|\]\(|```|<!--")

"""A page's tags, addresses and text, for tests of the report."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    """Tags that were opened and not closed, addresses, and the text."""

    VOID = ("meta", "img", "br")

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text, self.tags = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read_page(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader, " ".join(" ".join(reader.text).split())

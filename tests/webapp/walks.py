"""A walk of a browser through the pages by clicks, each of which may end in no exception."""

from playwright.sync_api import Error, Locator, Page

from tests.webapp.served import WAIT_MS, ended

PAGES = {
    "Home": "home",
    "Answer": "",
    "Choose": "choose",
    "Promise": "promise",
    "Explain": "explain",
    "Accuracy": "accuracy",
    "Language": "language",
    "Evidence": "point",
    "Compare": "compare",
    "History": "history",
    "Runs": "runs",
    "SQL": "sql",
}
"""Title of each page in the navigation, and its address."""


class Walk:
    """Clicks on the pages of the app at `address`, and what went wrong after each."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.clicks: list[str] = []
        """Since the page was opened by its address."""
        self.problems: list[str] = []
        """Clicks, and the exception that followed them."""

    def open(self, path: str) -> None:
        """Open a page by its address."""
        self.clicks = [path]
        self.page.goto(f"{self.address}/{path}")
        self.check()

    def navigate(self, title: str) -> None:
        """Click on a page in the navigation."""
        self.clicks.append(title)
        link = self.page.locator("[data-testid=stTopNavLink]").get_by_text(title, exact=True)
        link.click(timeout=WAIT_MS)
        self.check()

    def back(self) -> None:
        """Back in the history of the browser."""
        self.clicks.append("Back")
        self.page.go_back()
        self.check()

    @property
    def main(self) -> Locator:
        """The page below the navigation."""
        return self.page.locator("[data-testid=stMain]")

    def select(self, name: str, option: str) -> None:
        """Choose an option of a list."""
        wanted = self.page.get_by_role("option", name=option, exact=True)
        assert self.select_another(name, wanted), (self.clicks, name, option)

    def select_another(self, name: str, wanted: Locator | None = None) -> bool:
        """Choose an option of a list, by default one that is not chosen yet; whether there is
        one.
        """
        others = wanted or self.page.locator("[role=option]:not([aria-selected=true])")
        for _ in range(5):
            self.page.mouse.move(0, 0)  # the buttons of a chart show while the pointer is on it
            self.page.get_by_role("combobox", name=name, exact=True).click(timeout=WAIT_MS)
            try:
                self.page.get_by_role("option").first.wait_for(timeout=WAIT_MS / 5)
                if not others.count():
                    self.page.keyboard.press("Escape")
                    return False
                option = others.first.inner_text(timeout=WAIT_MS / 5)
                others.first.click(timeout=WAIT_MS / 5)
            except Error:
                continue
            self.clicks.append(f"{name}: {option}")
            self.check()
            return True
        raise AssertionError(f"{self.clicks}: {name} never offered an option")

    @property
    def selects(self) -> list[str]:
        """The names of the lists of the page."""
        boxes = self.main.get_by_role("combobox").all()
        return [str(box.get_attribute("aria-label")) for box in boxes]

    def check(self) -> None:
        """No exception once the page has run."""
        ended(self.page)
        shown = self.page.locator("[data-testid=stException]")
        if shown.count():
            text = " ".join(shown.first.inner_text().split())[-200:]
            self.problems.append(f"{' > '.join(self.clicks)}: {text}")

"""What pages share: charts, numbers as text, a style, parts of templates. A page is one file that opens offline."""

"""Every token that a published catalogue of token shapes describes by a mark is found, and the page names them all."""

import random
import re
import string

import pytest

from balog.common.redaction import Redactor

ALPHABETS = {
    "w": string.ascii_letters + string.digits + "_-",
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
}
# <alphabet length>: the shapes of gitleaks 8.30.1, whose rules have a mark, and of Linear, Airtable and Google.
SHAPES = """
A3-<u6>-<u11>-<u5>-<u5>-<u5>|ops_eyJ<a250>|p8e-<h32>|AGE-SECRET-KEY-1<u58>|pat<a14>.<h64>|LTAI<l20>|sk-ant-admin01-<w93>AA
sk-ant-api03-<w93>AA|AKCp<a69>|cmVmd<a59>|ATATT3<a186>|sc_<l12>.<l5>.acc-<l20>.<l60>|authress_<l30>.<l6>.acc_<l10>.<l30>
AKIA<u16>|A3TX<u16>|ABSK<a109>|bedrock-api-key-<a40>|<a3>8Q~<a34>|4b1d<a38>|CLOJARS_<l60>|v1.0-<h24>-<h146>|dapi<h32>
dnkey-<l26>-<l52>|doo_v1_<h64>|dop_v1_<h64>|dor_v1_<h64>|dp.pt.<l43>|<l11>AAAAAAAAAA<l43>|sl.<l135>|duffel_test_<l43>
dt0c01.<l24>.<l64>|EZAK<l54>|EZTK<l54>|<d16>|EAAM<l110>|FLWSECK_TEST-<h12>|FLWPUBK_TEST-<h32>-X|fo1_<w43>|fm1a_<a100>
fm2_<a100>|fio-u-<l64>|AIza<w35>|ghu_<a36>|ghs_<a36>|github_pat_<a82>|gho_<a36>|ghp_<a36>|ghr_<a36>|glcbt-<a5>_<w20>
gldt-<w20>|glffct-<w20>|glft-<w20>|glimt-<w25>|glagent-<w50>|gloas-<w64>|glpat-<w20>|glpat-<w27>.<l9>|glptt-<h40>
GR1348941<w20>|glrt-<w20>|glrt-t1_<w27>.<l9>|glsoat-<w20>|_gitlab_session=<l32>|eyJrIjoi<a70>|glc_<a32>|glsa_<a32>_<h8>
pat.<w22>.<a24>.<a20>|sat.<w22>.<a24>.<a20>|<l14>.atlasv1.<l60>|HRKU-AA<w58>|hf_<l34>|api_org_<a34>|ico-<a32>|s-s4t2ud-<h64>
eyJ<a20>.eyJ<a20>.<a20>|ZXlKaGJHY2lPaU<a60>|lin_api_<l40>|live_<h35>|test_pub_<h31>|<h32>-us12|key-<h32>|pubkey-<h32>
<h32>-<h8>-<h8>|pk.eyJ<a57>.<l22>|<a6>_<a29>_mmk|NRJS-<h19>|NRII-<l32>|NRAK-<l27>|ntn_<d11><a35>|npm_<l36>|API-<u26>
sk-proj-<w74>T3BlbkFJ<w74>|sha256~<w43>|pplx-<a48>|access-sandbox-<h8>-<h4>-<h4>-<h4>-<h12>|pscale_tkn_<a32>|pscale_oauth_<a32>
pscale_pw_<a32>|PMAK-<h24>-<h34>|pnu_<a36>|pul-<h40>|pypi-AgEIcHlwaS5vcmc<w60>|rdme_<l70>|rubygems_<h48>|tk-us-<w48>
SG.<a22>.<a43>|xkeysib-<h64>-<l16>|sntrys_eyJpYXQiO<a60>_<a43>|sntryu_<h64>|sm_aat_<a16>|sm_pat_<a16>|sm_sat_<a16>
shippo_live_<h40>|shpat_<h32>|shpca_<h32>|shppa_<h32>|shpss_<h32>|xapp-1-<u10>-<d12>-<l60>|xoxb-<d12>-<d12>-<a24>
xoxe.xoxb-1-<u163>|xoxe-1-<u146>|xoxp-<d12>-<d12>-<d12>-<a32>|xoxa-2-<a20>|squ_<h40>|sqp_<h40>|sqa_<h40>|sgp_<h16>_<h40>
sgp_<h40>|EAAA<w60>|sq0atp-<w22>|sk_live_<a24>|rk_test_<a24>|<d10>:AA<w33>|SK<h32>|AAAAAAAAAAAAAAAAAAAAAA<l90>
tfp_<w59>|hvb.<w138>|hvs.<w90>|s.<l24>|t1.<w30>.<w86>|AQVN<w35>|YC<w38>|1//0<w60>|ya29.<w60>|lin_oauth_<h64>
"""
CATALOGUE = [shape for shape in re.split(r"[|\n]", SHAPES) if shape and shape != "<d16>"]


def sample(shape: str, seed: int = 1) -> str:
    chosen = random.Random(f"{shape}{seed}")

    def fill(part: re.Match[str]) -> str:
        alphabet = ALPHABETS[part[1]]
        middle = "".join(chosen.choices(alphabet, k=int(part[2]) - 2))
        edges = [char for char in alphabet if char.isalnum()]
        return f"{chosen.choice(edges)}{middle}{chosen.choice(edges)}"

    return re.sub(r"<(\w)(\d+)>", fill, shape)


def longest_part(shape: str, token: str) -> str:
    """Return the longest random part of a token: what may not be left of it."""
    marks = [re.escape(mark) for mark in re.split(r"<\w\d+>", shape)]
    found = re.fullmatch("(.+)".join(marks), token, re.DOTALL)
    assert found is not None
    return max(found.groups(), key=len)


@pytest.mark.parametrize("shape", CATALOGUE)
def test_a_token_of_the_catalogue_is_found_wherever_it_stands(shape: str) -> None:
    for seed in range(5):
        token = sample(shape, seed)
        secret = longest_part(shape, token)
        for text in (token, f"login with {token} failed", f'{{"x":"{token}"}}', f"a={token}&b=1", f"see ({token}).\n"):
            assert secret not in Redactor().redact_text(text), text


def test_facebooks_app_token_is_found() -> None:
    token = f"{sample('<d16>')}|{sample('<w27>')}"
    assert Redactor().redact_text(f"x {token} y") == "x [redacted] y"
    assert Redactor().redact_text(f"x={token.replace('|', '%7C')} y") == "x=[redacted] y"


@pytest.mark.parametrize(
    "text",
    [
        "see https://example.com/a/1//0/readme",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "patch.20261127 pattern.recognition_of_tokens",
        "YC_batch_of_the_winter_2026_and_of_the_summer",
        "account_number acc_total.average_of_the_last_thirty_days",
    ],
)
def test_ordinary_text_with_the_beginning_of_a_mark_stays(text: str) -> None:
    assert Redactor().redact_text(text) == text


@pytest.mark.parametrize("before", ["%22", "\x1b[31m", "\x1b[0m", r"\u0022", r"\x27", r"\n", "Bearer%20"])
def test_a_token_after_an_escape_or_a_colour_is_found(before: str) -> None:
    token = "ghp_" + "aB3d" * 9
    assert token not in Redactor().redact_text(f"GET /?q={before}{token} 500")


@pytest.mark.parametrize(
    "secret",
    [
        "postgres://app:S3cr3t!pw@db.corp.com/x",
        "https://3f9a77aa1bTOKEN:x@github.com/o",
        "ghp_4111111111111111" + "aB3d" * 6,
    ],
)
def test_addresses_and_card_numbers_inside_a_secret_leave_nothing_of_it(secret: str) -> None:
    found = Redactor(emails=True, cards=True).redact_text(f"connect {secret} now")
    assert not any(part in found for part in ("S3cr3t", "3f9a77aa", "aB3d"))

// Currencies of the world.  Codes and minor units: ISO 4217 (list one, amendment 177); English names: Unicode CLDR 45,
// shortened to what is said.
#include "text/speech/currencies.h"

#include <algorithm>
#include <iterator>

namespace syrinx::text {
namespace {

// Code, nation, one, more, minor unit: one, more, its digits, is the code a word too.
constexpr Currency kCurrencies[] = {
    {"AED", "Emirati", "dirham", "dirhams", "fils", "fils", 2, false},
    {"AFN", "Afghan", "afghani", "afghanis", "pul", "puls", 2, false},
    {"ALL", "Albanian", "lek", "lek", "qindarka", "qindarkas", 2, true},
    {"AMD", "Armenian", "dram", "drams", "luma", "lumas", 2, false},
    {"ANG", "Antillean", "guilder", "guilders", "cent", "cents", 2, false},
    {"AOA", "Angolan", "kwanza", "kwanzas", "centimo", "centimos", 2, false},
    {"ARS", "Argentine", "peso", "pesos", "centavo", "centavos", 2, false},
    {"AUD", "Australian", "dollar", "dollars", "cent", "cents", 2, false},
    {"AWG", "Aruban", "florin", "florins", "cent", "cents", 2, false},
    {"AZN", "Azerbaijani", "manat", "manats", "qapik", "qapiks", 2, false},
    {"BAM", "Bosnian", "mark", "marks", "fening", "fenings", 2, true},
    {"BBD", "Barbadian", "dollar", "dollars", "cent", "cents", 2, false},
    {"BDT", "Bangladeshi", "taka", "takas", "poisha", "poisha", 2, false},
    {"BGN", "Bulgarian", "lev", "leva", "stotinka", "stotinki", 2, false},
    {"BHD", "Bahraini", "dinar", "dinars", "fils", "fils", 3, false},
    {"BIF", "Burundian", "franc", "francs", "", "", 2, false},
    {"BMD", "Bermudian", "dollar", "dollars", "cent", "cents", 2, false},
    {"BND", "Brunei", "dollar", "dollars", "cent", "cents", 2, false},
    {"BOB", "Bolivian", "boliviano", "bolivianos", "centavo", "centavos", 2, true},
    {"BRL", "Brazilian", "real", "reais", "centavo", "centavos", 2, false},
    {"BSD", "Bahamian", "dollar", "dollars", "cent", "cents", 2, false},
    {"BTN", "Bhutanese", "ngultrum", "ngultrums", "chetrum", "chetrums", 2, false},
    {"BWP", "Botswanan", "pula", "pula", "thebe", "thebe", 2, false},
    {"BYN", "Belarusian", "ruble", "rubles", "kopek", "kopeks", 2, false},
    {"BZD", "Belize", "dollar", "dollars", "cent", "cents", 2, false},
    {"CAD", "Canadian", "dollar", "dollars", "cent", "cents", 2, false},
    {"CDF", "Congolese", "franc", "francs", "centime", "centimes", 2, false},
    {"CHF", "Swiss", "franc", "francs", "rappen", "rappen", 2, false},
    {"CLP", "Chilean", "peso", "pesos", "", "", 2, false},
    {"CNY", "Chinese", "yuan", "yuan", "fen", "fen", 2, false},
    {"COP", "Colombian", "peso", "pesos", "centavo", "centavos", 2, true},
    {"CRC", "Costa Rican", "colon", "colones", "centimo", "centimos", 2, false},
    {"CUP", "Cuban", "peso", "pesos", "centavo", "centavos", 2, true},
    {"CVE", "Cape Verdean", "escudo", "escudos", "centavo", "centavos", 2, false},
    {"CZK", "Czech", "koruna", "korunas", "haler", "halers", 2, false},
    {"DJF", "Djiboutian", "franc", "francs", "", "", 2, false},
    {"DKK", "Danish", "krone", "kroner", "ore", "ore", 2, false},
    {"DOP", "Dominican", "peso", "pesos", "centavo", "centavos", 2, false},
    {"DZD", "Algerian", "dinar", "dinars", "centime", "centimes", 2, false},
    {"EGP", "Egyptian", "pound", "pounds", "piastre", "piastres", 2, false},
    {"ERN", "Eritrean", "nakfa", "nakfas", "cent", "cents", 2, false},
    {"ETB", "Ethiopian", "birr", "birr", "santim", "santims", 2, false},
    {"EUR", "", "euro", "euros", "cent", "cents", 2, false},
    {"FJD", "Fijian", "dollar", "dollars", "cent", "cents", 2, false},
    {"FKP", "Falkland", "pound", "pounds", "penny", "pence", 2, false},
    {"GBP", "British", "pound", "pounds", "penny", "pence", 2, false},
    {"GEL", "Georgian", "lari", "lari", "tetri", "tetri", 2, true},
    {"GHS", "Ghanaian", "cedi", "cedis", "pesewa", "pesewas", 2, false},
    {"GIP", "Gibraltar", "pound", "pounds", "penny", "pence", 2, false},
    {"GMD", "Gambian", "dalasi", "dalasis", "butut", "bututs", 2, false},
    {"GNF", "Guinean", "franc", "francs", "", "", 2, false},
    {"GTQ", "Guatemalan", "quetzal", "quetzals", "centavo", "centavos", 2, false},
    {"GYD", "Guyanese", "dollar", "dollars", "cent", "cents", 2, false},
    {"HKD", "Hong Kong", "dollar", "dollars", "cent", "cents", 2, false},
    {"HNL", "Honduran", "lempira", "lempiras", "centavo", "centavos", 2, false},
    {"HTG", "Haitian", "gourde", "gourdes", "centime", "centimes", 2, false},
    {"HUF", "Hungarian", "forint", "forints", "", "", 2, false},
    {"IDR", "Indonesian", "rupiah", "rupiah", "", "", 2, false},
    {"ILS", "Israeli", "shekel", "shekels", "agora", "agorot", 2, false},
    {"INR", "Indian", "rupee", "rupees", "paisa", "paise", 2, false},
    {"IQD", "Iraqi", "dinar", "dinars", "fils", "fils", 3, false},
    {"IRR", "Iranian", "rial", "rials", "", "", 2, false},
    {"ISK", "Icelandic", "krona", "kronur", "", "", 2, false},
    {"JMD", "Jamaican", "dollar", "dollars", "cent", "cents", 2, false},
    {"JOD", "Jordanian", "dinar", "dinars", "fils", "fils", 3, false},
    {"JPY", "Japanese", "yen", "yen", "", "", 2, false},
    {"KES", "Kenyan", "shilling", "shillings", "cent", "cents", 2, false},
    {"KGS", "Kyrgyz", "som", "soms", "tyiyn", "tyiyns", 2, false},
    {"KHR", "Cambodian", "riel", "riels", "sen", "sen", 2, false},
    {"KMF", "Comorian", "franc", "francs", "", "", 2, false},
    {"KPW", "North Korean", "won", "won", "chon", "chon", 2, false},
    {"KRW", "South Korean", "won", "won", "", "", 2, false},
    {"KWD", "Kuwaiti", "dinar", "dinars", "fils", "fils", 3, false},
    {"KYD", "Cayman", "dollar", "dollars", "cent", "cents", 2, false},
    {"KZT", "Kazakhstani", "tenge", "tenge", "tiyn", "tiyns", 2, false},
    {"LAK", "Lao", "kip", "kip", "att", "att", 2, false},
    {"LBP", "Lebanese", "pound", "pounds", "piastre", "piastres", 2, false},
    {"LKR", "Sri Lankan", "rupee", "rupees", "cent", "cents", 2, false},
    {"LRD", "Liberian", "dollar", "dollars", "cent", "cents", 2, false},
    {"LSL", "Lesotho", "loti", "maloti", "sente", "lisente", 2, false},
    {"LYD", "Libyan", "dinar", "dinars", "dirham", "dirhams", 3, false},
    {"MAD", "Moroccan", "dirham", "dirhams", "centime", "centimes", 2, true},
    {"MDL", "Moldovan", "leu", "lei", "ban", "bani", 2, false},
    {"MGA", "Malagasy", "ariary", "ariary", "", "", 2, false},
    {"MKD", "Macedonian", "denar", "denars", "deni", "deni", 2, false},
    {"MMK", "Myanmar", "kyat", "kyats", "pya", "pyas", 2, false},
    {"MNT", "Mongolian", "tugrik", "tugriks", "mongo", "mongos", 2, false},
    {"MOP", "Macanese", "pataca", "patacas", "avo", "avos", 2, true},
    {"MRU", "Mauritanian", "ouguiya", "ouguiyas", "", "", 2, false},
    {"MUR", "Mauritian", "rupee", "rupees", "cent", "cents", 2, false},
    {"MVR", "Maldivian", "rufiyaa", "rufiyaa", "laari", "laari", 2, false},
    {"MWK", "Malawian", "kwacha", "kwachas", "tambala", "tambalas", 2, false},
    {"MXN", "Mexican", "peso", "pesos", "centavo", "centavos", 2, false},
    {"MYR", "Malaysian", "ringgit", "ringgits", "sen", "sen", 2, false},
    {"MZN", "Mozambican", "metical", "meticais", "centavo", "centavos", 2, false},
    {"NAD", "Namibian", "dollar", "dollars", "cent", "cents", 2, false},
    {"NGN", "Nigerian", "naira", "naira", "kobo", "kobo", 2, false},
    {"NIO", "Nicaraguan", "cordoba", "cordobas", "centavo", "centavos", 2, false},
    {"NOK", "Norwegian", "krone", "kroner", "ore", "ore", 2, false},
    {"NPR", "Nepalese", "rupee", "rupees", "paisa", "paise", 2, true},
    {"NZD", "New Zealand", "dollar", "dollars", "cent", "cents", 2, false},
    {"OMR", "Omani", "rial", "rials", "baisa", "baisas", 3, false},
    {"PAB", "Panamanian", "balboa", "balboas", "centesimo", "centesimos", 2, false},
    {"PEN", "Peruvian", "sol", "soles", "centimo", "centimos", 2, true},
    {"PGK", "Papua New Guinean", "kina", "kinas", "toea", "toeas", 2, false},
    {"PHP", "Philippine", "peso", "pesos", "centavo", "centavos", 2, true},
    {"PKR", "Pakistani", "rupee", "rupees", "paisa", "paise", 2, false},
    {"PLN", "Polish", "zloty", "zlotys", "grosz", "groszy", 2, false},
    {"PYG", "Paraguayan", "guarani", "guaranis", "", "", 2, false},
    {"QAR", "Qatari", "riyal", "riyals", "dirham", "dirhams", 2, false},
    {"RON", "Romanian", "leu", "lei", "ban", "bani", 2, true},
    {"RSD", "Serbian", "dinar", "dinars", "para", "paras", 2, false},
    {"RUB", "Russian", "ruble", "rubles", "kopek", "kopeks", 2, true},
    {"RWF", "Rwandan", "franc", "francs", "", "", 2, false},
    {"SAR", "Saudi", "riyal", "riyals", "halala", "halalas", 2, false},
    {"SBD", "Solomon Islands", "dollar", "dollars", "cent", "cents", 2, false},
    {"SCR", "Seychellois", "rupee", "rupees", "cent", "cents", 2, false},
    {"SDG", "Sudanese", "pound", "pounds", "piastre", "piastres", 2, false},
    {"SEK", "Swedish", "krona", "kronor", "ore", "ore", 2, false},
    {"SGD", "Singapore", "dollar", "dollars", "cent", "cents", 2, false},
    {"SHP", "Saint Helena", "pound", "pounds", "penny", "pence", 2, false},
    {"SLE", "Sierra Leonean", "leone", "leones", "cent", "cents", 2, false},
    {"SOS", "Somali", "shilling", "shillings", "cent", "cents", 2, true},
    {"SRD", "Surinamese", "dollar", "dollars", "cent", "cents", 2, false},
    {"SSP", "South Sudanese", "pound", "pounds", "piastre", "piastres", 2, false},
    {"STN", "Sao Tomean", "dobra", "dobras", "centimo", "centimos", 2, false},
    {"SYP", "Syrian", "pound", "pounds", "piastre", "piastres", 2, false},
    {"SZL", "Swazi", "lilangeni", "emalangeni", "cent", "cents", 2, false},
    {"THB", "Thai", "baht", "baht", "satang", "satang", 2, false},
    {"TJS", "Tajikistani", "somoni", "somonis", "diram", "dirams", 2, false},
    {"TMT", "Turkmenistani", "manat", "manats", "tenge", "tenge", 2, false},
    {"TND", "Tunisian", "dinar", "dinars", "millime", "millimes", 3, false},
    {"TOP", "Tongan", "paanga", "paanga", "seniti", "seniti", 2, true},
    {"TRY", "Turkish", "lira", "lira", "kurus", "kurus", 2, true},
    {"TTD", "Trinidad", "dollar", "dollars", "cent", "cents", 2, false},
    {"TWD", "Taiwan", "dollar", "dollars", "cent", "cents", 2, false},
    {"TZS", "Tanzanian", "shilling", "shillings", "cent", "cents", 2, false},
    {"UAH", "Ukrainian", "hryvnia", "hryvnias", "kopiyka", "kopiykas", 2, false},
    {"UGX", "Ugandan", "shilling", "shillings", "", "", 2, false},
    {"USD", "US", "dollar", "dollars", "cent", "cents", 2, false},
    {"UYU", "Uruguayan", "peso", "pesos", "centesimo", "centesimos", 2, false},
    {"UZS", "Uzbek", "som", "soms", "tiyin", "tiyins", 2, false},
    {"VED", "Venezuelan", "digital bolivar", "digital bolivars", "centimo", "centimos", 2, false},
    {"VES", "Venezuelan", "bolivar", "bolivars", "centimo", "centimos", 2, false},
    {"VND", "Vietnamese", "dong", "dong", "", "", 2, false},
    {"VUV", "Vanuatu", "vatu", "vatu", "", "", 2, false},
    {"WST", "Samoan", "tala", "tala", "sene", "sene", 2, false},
    {"XAF", "Central African", "franc", "francs", "", "", 2, false},
    {"XCD", "East Caribbean", "dollar", "dollars", "cent", "cents", 2, false},
    {"XOF", "West African", "franc", "francs", "", "", 2, false},
    {"XPF", "Pacific", "franc", "francs", "", "", 2, false},
    {"YER", "Yemeni", "rial", "rials", "fils", "fils", 2, false},
    {"ZAR", "South African", "rand", "rand", "cent", "cents", 2, false},
    {"ZMW", "Zambian", "kwacha", "kwachas", "ngwee", "ngwee", 2, false},
    {"ZWG", "Zimbabwe", "gold", "gold", "cent", "cents", 2, false},
    {"BTC", "", "bitcoin", "bitcoins", "", "", 2, false},
    {"ETH", "", "ether", "ether", "", "", 2, false},
    {"CNH", "offshore", "yuan", "yuan", "fen", "fen", 2, false},
    {"RMB", "", "yuan", "yuan", "fen", "fen", 2, false},
};

struct Signed {
  char32_t sign;
  std::string_view code;
};
constexpr Signed kSigns[] = {
    {U'$', "USD"},   {U'£', "GBP"}, {U'€', "EUR"},   {U'¥', "JPY"}, {U'₹', "INR"}, {U'₩', "KRW"},   {U'₪', "ILS"},
    {U'₺', "TRY"},   {U'₴', "UAH"}, {U'₦', "NGN"},   {U'₱', "PHP"}, {U'₫', "VND"}, {U'₽', "RUB"}, {U'₡', "CRC"},
    {U'₲', "PYG"},   {U'₵', "GHS"}, {U'₸', "KZT"},   {U'₭', "LAK"}, {U'₮', "MNT"}, {U'₼', "AZN"}, {U'₾', "GEL"},
    {U'₿', "BTC"}, {U'฿', "THB"}, {U'৳', "BDT"},   {U'៛', "KHR"}, {U'﷼', "IRR"}, {U'₨', "PKR"},   {U'֏', "AMD"},
    {U'؋', "AFN"},   {U'₤', "GBP"}, {0x20C0, "KGS"},
};

struct Prefixed {
  std::string_view letters;  // before a dollar sign
  std::string_view code;
};
constexpr Prefixed kDollars[] = {
    {"US", "USD"}, {"CA", "CAD"}, {"C", "CAD"},  {"AU", "AUD"}, {"A", "AUD"},  {"NZ", "NZD"},
    {"HK", "HKD"}, {"S", "SGD"},  {"NT", "TWD"}, {"R", "BRL"},  {"MX", "MXN"}, {"Z", "ZWG"},
    {"J", "JMD"},  {"TT", "TTD"}, {"BZ", "BZD"}, {"EC", "XCD"}, {"FJ", "FJD"}, {"N", "NAD"},
};

// Short forms before or behind the amount, without the marks of their letters.
constexpr Prefixed kShortForms[] = {
    {"Rs", "INR"},
    {"zl", "PLN"},
    {"kr", "SEK"},
    {"Kc", "CZK"},
};

}  // namespace

const Currency* currency_of_code(std::string_view code) {
  const auto* found =
      std::find_if(std::begin(kCurrencies), std::end(kCurrencies), [&](const Currency& c) { return c.code == code; });
  return found == std::end(kCurrencies) ? nullptr : found;
}

const Currency* currency_of_sign(char32_t sign) {
  for (const Signed& each : kSigns) {
    if (each.sign == sign) return currency_of_code(each.code);
  }
  return nullptr;
}

const Currency* currency_of_dollar(std::string_view letters) {
  for (const Prefixed& each : kDollars) {
    if (each.letters == letters) return currency_of_code(each.code);
  }
  return nullptr;
}

const Currency* currency_of_short_form(std::string_view letters) {
  for (const Prefixed& each : kShortForms) {
    if (each.letters == letters) return currency_of_code(each.code);
  }
  return nullptr;
}

bool is_currency_sign(char32_t c) {
  return std::any_of(std::begin(kSigns), std::end(kSigns), [&](const Signed& each) { return each.sign == c; });
}

}  // namespace syrinx::text

      * THE TARIFF: A FLAT CHARGE IN MINOR UNITS, AND HUNDREDTHS OF A
      * PER CENT OF THE AMOUNT.
       01  WS-TARIFF-VALUES.
           05  FILLER                  PIC X(17)
               VALUE "ATM     000150000".
           05  FILLER                  PIC X(17)
               VALUE "CARDPAY 000000000".
           05  FILLER                  PIC X(17)
               VALUE "TRANSFER000050000".
           05  FILLER                  PIC X(17)
               VALUE "TOPUPCRD000000150".
           05  FILLER                  PIC X(17)
               VALUE "TOPUPBNK000000000".
           05  FILLER                  PIC X(17)
               VALUE "EXCHANGE000000050".
       01  WS-TARIFF REDEFINES WS-TARIFF-VALUES.
           05  WS-TARIFF-ENTRY OCCURS 6 TIMES INDEXED BY TF-IX.
               10  TF-KIND             PIC X(8).
               10  TF-FLAT             PIC 9(6).
               10  TF-RATE             PIC 9(3).

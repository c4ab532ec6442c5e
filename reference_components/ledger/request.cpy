      * A REQUEST, 120 CHARACTERS.
       01  REQUEST-RECORD.
           05  RQ-FUNCTION             PIC X(8).
           05  RQ-ACCOUNT              PIC X(10).
           05  RQ-OTHER                PIC X(10).
           05  RQ-CURRENCY             PIC X(3).
           05  RQ-AMOUNT               PIC X(13).
           05  RQ-AMOUNT-N REDEFINES RQ-AMOUNT PIC 9(13).
           05  RQ-KIND                 PIC X(8).
           05  RQ-REFERENCE            PIC X(32).
           05  RQ-TEXT                 PIC X(32).
           05  RQ-FILLER               PIC X(4).
           05  RQ-OVERRUN              PIC X(1).
